"""A member of a causal conversation: it asks, answers what it is asked, and watches that no answer comes too early.

Each next question is asked when the first answer to the last one was delivered, so the conversation is as fast as the
system and stops for nobody in particular.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from cubecast.addresses import Address
from cubecast.errors import CubecastError
from cubecast.ids import MessageId, Topic
from cubecast.net.links.loop import run
from cubecast.net.live_node import LiveNode
from cubecast.net.port.port import GapNotice, Logged, PublisherCut
from cubecast.net.settings.config import NodeConfig

# A member's side of a live run: a node in this process, orders on standard input, events on standard output.

Order = Callable[[dict[str, Any]], Awaitable[None]]


def say(event: str, **details: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


async def obey(node: LiveNode, orders: dict[str, Order]) -> None:
    """Carry out orders, one after the other, until told to leave or until the supervisor is gone."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        order = json.loads(line)
        if order["do"] == "leave":
            await node.close()
            return
        await orders[order["do"]](order)


TALK: Topic = "talk"
ASKED_AT_ONCE = 3
"""So many members are asked by each question."""
REPORT_EVERY = 10


class Talker:
    """A `Sink`: what it says depends on what it heard."""

    def __init__(self, node: LiveNode, seed: int) -> None:
        self._node = node
        self._me = node.place.node
        self._random = Random(f"{seed}-{self._me}")
        self._partners: list[int] = []
        self._talks = False
        self._heard: set[tuple[int, int]] = set()
        self._answered: set[tuple[int, int]] = set()
        self._last: dict[str, int] = {}
        self.questions = self.answers = self.delivered = self.too_early = self.gaps = 0

    # What arrives

    def on_ready(self) -> None:
        say("ready", node=self._me, address=self._node.place.address)

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        self.delivered += len(payloads)
        self._last[f"{first.source}.{first.incarnation}"] = first.counter + len(payloads) - 1
        for payload in payloads:
            kind, asker, number, asked = json.loads(payload)
            if kind == "question":
                self._on_question((asker, number), asked)
            else:
                self._on_answer((asker, number))

    def on_live(self, known: PublisherCut) -> None: ...

    def on_gap(self, gap: GapNotice) -> None:
        self.gaps += max(1, len(gap.missing))

    def on_end(self, error: CubecastError | None) -> None:
        if error is not None:
            raise error

    def _on_question(self, question: tuple[int, int], asked: list[int]) -> None:
        self._heard.add(question)
        self.too_early += question in self._answered
        if self._me in asked:
            self.answers += 1
            self._publish("answer", *question)

    def _on_answer(self, question: tuple[int, int]) -> None:
        self._answered.add(question)
        if self._talks and question == (self._me, self.questions):
            self._ask()

    def _ask(self) -> None:
        self.questions += 1
        others = [one for one in self._partners if one != self._me]
        self._publish("question", self._me, self.questions, self._random.sample(others, ASKED_AT_ONCE))
        if self.questions % REPORT_EVERY == 0:
            say("asked", questions=self.questions)

    def _publish(self, kind: str, asker: int, number: int, asked: list[int] | None = None) -> None:
        self._node.port.publish(TALK, [json.dumps((kind, asker, number, asked)).encode()])

    # Orders

    async def talk(self, order: dict[str, Any]) -> None:
        """Ask these members, from now on."""
        begins, self._talks = not self._talks, True
        self._partners = order["partners"]
        if begins:
            self._ask()

    async def hush(self, _: dict[str, Any]) -> None:
        """No more questions; answers are still given."""
        self._talks = False
        say("hushed")

    async def report(self, _: dict[str, Any]) -> None:
        """When what it published so far reached everybody: how far it is with whom."""
        await self._node.port.publishing.published_all()
        say("report", last=self._last, delivered=self.delivered)

    async def rest(self, _: dict[str, Any]) -> None:
        await self._node.end_journal()
        counted = {name: getattr(self, name) for name in ("questions", "answers", "delivered", "too_early", "gaps")}
        say("rested", **counted)


async def main(options: dict[str, Any]) -> None:
    config = NodeConfig(
        node=options.get("node"),
        join=tuple(Address.parse(one) for one in options["join"]),
        cluster=options["cluster"],
        dimension=options["dimension"],
        journal=Path(options["journal"]),
        journal_packets=True,
    )
    node = LiveNode(config)
    await node.start()
    talker = Talker(node, options["seed"])
    node.port.subscribe(TALK, talker)
    await obey(node, {"talk": talker.talk, "hush": talker.hush, "report": talker.report, "rest": talker.rest})


if __name__ == "__main__":
    run(main(json.loads(sys.argv[1])))
