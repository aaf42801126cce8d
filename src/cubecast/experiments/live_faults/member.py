"""One process of a cluster under test: a node that publishes and subscribes as it is told.

Its configuration is the first line of standard input, commands follow, a line each; it reports on standard output. All
lines are JSON objects. `python -m cubecast.experiments.live_faults.member` is only useful to its supervisor.
"""

import asyncio
import faulthandler
import json
import os
import resource
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any
from zlib import crc32

from cubecast.addresses import Address
from cubecast.errors import CubecastError
from cubecast.ids import MessageId, Topic
from cubecast.net.links.loop import run
from cubecast.net.live_node import LiveNode
from cubecast.net.port.port import GapNotice, Logged, PublisherCut
from cubecast.net.settings.config import NodeConfig

TICK = 0.01
"""Seconds between two publications of a member that publishes at a rate."""
MAX_LINE = 1 << 24
KEPT = 100_000
"""Latencies, the newest."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


def payload(now: float, number: int, size: int) -> bytes:
    """When it was published, its number, and a checksum of its own: what arrives changed is noticed."""
    content = b"%f %d" % (now, number)
    return (b"%s %08x " % (content, crc32(content))).ljust(size, b".")


def published_at(data: bytes) -> float | None:
    """None when this is not what anybody published."""
    time, number, checksum, *_ = *data.split(b" "), b"", b"", b""
    return float(time) if b"%08x" % crc32(b"%s %s" % (time, number)) == checksum else None


def resident() -> int:
    """Bytes of memory this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def report(**what: Any) -> None:
    """One write per line, so that a killed process never leaves half a line between two others."""
    os.write(sys.stdout.fileno(), (json.dumps(what) + "\n").encode())


class Reader:
    """The sink of the member's subscription to one topic."""

    def __init__(self, member: "Member", topic: Topic) -> None:
        self._member = member
        self._topic = topic
        self.latencies: deque[float] = deque(maxlen=KEPT)

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        now = monotonic()  # uvloop's own clock counts milliseconds
        member = self._member
        member.delivered += len(payloads)
        for data in payloads:
            published = published_at(data)
            if published is None:
                member.wrong += 1
            elif first.source != member.node.place.node:
                self.latencies.append(now - published)

    def on_ready(self) -> None:
        report(event="ready", topic=self._topic)

    def on_live(self, known: PublisherCut) -> None: ...

    def on_gap(self, gap: GapNotice) -> None:
        self._member.gaps += 1
        report(event="gap", topic=gap.topic, missing=len(gap.missing), reason=gap.reason)

    def on_end(self, error: CubecastError | None) -> None:
        pass


class Member:
    def __init__(self, node: LiveNode) -> None:
        self.node = node
        self.delivered = 0
        self.gaps = 0
        self.wrong = 0
        """Messages that nobody published like that."""
        self._subscriptions: dict[Topic, int] = {}
        self._readers: dict[Topic, Reader] = {}
        self._publishing: list[asyncio.Task[None]] = []

    def reader(self, topic: Topic) -> Reader:
        return Reader(self, topic)

    def message(self, topic: Topic, now: float, number: int, size: int) -> bytes:
        return payload(now, number, size)

    async def obey(self, do: str, **how: Any) -> None:
        answer = await getattr(self, f"_do_{do}")(**how)
        report(event="done", do=do, **(answer or {}))

    async def _do_subscribe(self, topic: Topic) -> None:
        reader = self._readers[topic] = self.reader(topic)
        self._subscriptions[topic] = self.node.port.subscribe(topic, reader)

    async def _do_publish(self, topics: list[Topic], rate: float, size: int = 64) -> None:
        """Publish that many messages per second from now on, in turns to the topics."""
        self._publishing.append(asyncio.ensure_future(self._publish(topics, rate, size)))

    async def _do_quiet(self) -> None:
        for task in self._publishing:
            task.cancel()
        self._publishing.clear()

    async def _do_pause(self, topic: Topic) -> None:
        self.node.port.pause(self._subscriptions[topic])

    async def _do_resume(self, topic: Topic) -> None:
        self.node.port.resume(self._subscriptions[topic])

    async def _do_status(self) -> dict[str, Any]:
        return self._status()

    async def _do_latencies(self, topic: Topic) -> dict[str, Any]:
        """Seconds from publication to delivery of others' messages, since the last such question."""
        latencies = self._readers[topic].latencies
        taken = list(latencies)
        latencies.clear()
        return {"latencies": taken}

    async def _do_conclude(self) -> None:
        await self.node.end_journal()

    async def _publish(self, topics: list[Topic], rate: float, size: int) -> None:
        port = self.node.port
        started, sent, turn = monotonic(), 0, 0
        while True:
            now = monotonic()
            due = int((now - started) * rate) - sent
            if due > rate:
                sent, due = sent + due, 0  # it stood still; what it did not say then it does not say now
            topic = topics[turn % len(topics)]
            if due > 0 and port.has_room(topic):
                port.publish(topic, [self.message(topic, now, sent + k, size) for k in range(due)])
                sent, turn = sent + due, turn + 1
            await asyncio.sleep(TICK)

    def _status(self) -> dict[str, Any]:
        machine, inspector = self.node.machine, self.node.inspector
        outgoing = self.node.port.describe()["outgoing"]
        return {
            "incarnation": machine.incarnation,
            "active": inspector.is_active,
            "living": inspector.living,
            "waiting": machine.waiting(),
            "unstable": sum(one["accepted"] - one["stable"] for one in outgoing.values()),
            "delivered": self.delivered,
            "gaps": self.gaps,
            "wrong": self.wrong,
            "memory": resident(),
            "cpu_seconds": sum(resource.getrusage(resource.RUSAGE_SELF)[:2]),
        }


def _configured(settings: dict[str, Any]) -> NodeConfig:
    settings = {name: value for name, value in settings.items() if name != "records"}
    for name in ("journal", "inputs", "data"):
        if name in settings:
            settings[name] = Path(settings[name])
    settings["log"] = tuple(settings.get("log", ()))
    settings["listen"] = Address.parse(settings["listen"])
    settings["join"] = tuple(Address.parse(one) for one in settings.get("join", ()))
    through = settings.get("dial_through", {})
    settings["dial_through"] = {int(node): Address.parse(address) for node, address in through.items()}
    return NodeConfig(**settings)


async def serve(make: Callable[[LiveNode, dict[str, Any]], Member] = lambda node, settings: Member(node)) -> None:
    faulthandler.register(signal.SIGUSR1)
    lines = asyncio.StreamReader(limit=MAX_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    settings = json.loads(await lines.readline())
    node = LiveNode(_configured(settings))
    await node.start()
    member = make(node, settings)
    report(event="started", node=node.place.node, incarnation=node.place.incarnation, address=node.place.address)
    while line := await lines.readline():
        await member.obey(**json.loads(line))


if __name__ == "__main__":
    run(serve())
