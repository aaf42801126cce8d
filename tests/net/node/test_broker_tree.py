"""Fifteen broker processes, thirty clients: brokers are killed, restarted and paused, and no client of the others loses
anything, reads it twice, or reads an effect before its cause."""

import asyncio
import json
import os
import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from cubecast import connect
from cubecast.api.client import Client
from cubecast.api.message import Gap
from cubecast.check import check_directory
from cubecast.check.verdict import Verdict
from cubecast.protocol.brokers.tree import binary
from cubecast.protocol.families import find
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import collect
from support.commands import RunningNode, running
from support.ports import free_addresses
from support.running import run, until

TREE = binary(3)
KILLED, PAUSED = (1, 6, 11), 3
"""No two of the killed within two hops of each other; the first is restarted before another one is paused."""
EACH = 40
"""Messages of each client."""


class Talker:
    """A client that publishes on its topic, says what it has read before, and checks what it reads."""

    def __init__(self, name: int, client: Client) -> None:
        self.name, self.client, self.topic = name, client, "tu"[name % 2]
        self.read: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.said = 0

    async def listen(self) -> None:
        where = "n >= 0" if self.topic == "t" else "even = true"
        self._subscription = self.client.subscribe(self.topic, where=where, patience=60)
        await self._subscription.ready()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self._subscription:
            if isinstance(event, Gap):
                self.wrong.append(f"a gap: {event.reason}")
                continue
            by, number, before = event.data
            step = 1 if self.topic == "t" else 2
            if number != self.read[by] + step:
                self.wrong.append(f"{number} of {by} after {self.read[by]}")
            for other, last in before.items():
                if self.read[other] < last:
                    self.wrong.append(f"{number} of {by} before {last} of {other}")
            self.read[by] = max(number, self.read[by])

    async def say(self) -> None:
        self.said += 1
        headers = {"n": self.said, "even": self.said % 2 == 0, "by": f"c{self.name}"}
        await self.client.publish(self.topic, [f"c{self.name}", self.said, dict(self.read)], headers=headers)

    async def close(self) -> None:
        self._reading.cancel()
        await self.client.close()


class Tree:
    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._stack, self.journals = stack, directory / "journals"
        self.addresses = dict(zip(TREE.neighbours, free_addresses(len(TREE)), strict=True))
        self._file = directory / "brokers.toml"
        links = " ".join(f"{one}-{other}" for one, near in TREE.neighbours.items() for other in near if one < other)
        lines = ['protocol = "locaps"', "dimension = 4", f'journal = "{self.journals}"', "[peers]"]
        lines += [f'{node} = "{address}"' for node, address in self.addresses.items()]
        lines += ["[parameters]", f'links = "{links}"', 'faults = "1"', 'heartbeat = "5"', 'remove_after = "60"']
        self._file.write_text("\n".join(lines) + "\n")
        self.running: dict[int, RunningNode] = {}

    def start(self, *nodes: int) -> None:
        begun = {}
        for node in nodes:
            options = ("--json", "--config", self._file, "--id", node)
            begun[node] = self._stack.enter_context(running("node", *options))
        for node, command in begun.items():
            self.running[node] = RunningNode(command.process, **json.loads(command.line()))


async def talk(talkers: list[Talker], rounds: int) -> None:
    for _ in range(rounds):
        for talker in talkers:
            await talker.say()
        await asyncio.sleep(0)


def complete(talkers: list[Talker]) -> bool:
    """Has everybody what all of these published and it wants?"""
    return all(
        reader.read[f"c{one.name}"] >= (one.said if reader.topic == "t" else one.said // 2 * 2)
        for reader in talkers
        for one in talkers
        if one.topic == reader.topic
    )


@pytest.mark.slow
def test_killed_restarted_and_paused_brokers_cost_the_others_clients_nothing(tmp_path):
    with ExitStack() as stack:
        tree = Tree(tmp_path, stack)
        tree.start(*TREE.neighbours)

        async def main():
            talkers = []
            for name in range(2 * len(TREE)):
                address = tree.addresses[name // 2]
                talkers.append(Talker(name, await connect(address, timeout=60, name=f"c{name}")))
                await talkers[-1].listen()
            staying = [one for one in talkers if one.name // 2 not in KILLED]
            await talk(talkers, EACH // 4)
            for node in KILLED:
                tree.running[node].kill()
            await talk(staying, EACH // 4)
            await until(lambda: complete(staying), 300)
            await asyncio.to_thread(tree.start, KILLED[0])
            assert tree.running[KILLED[0]].incarnation == 1
            await talk(staying, EACH // 4)
            paused = tree.running[PAUSED].process.pid
            os.kill(paused, signal.SIGSTOP)
            others = [one for one in staying if one.name // 2 != PAUSED]
            await talk(others, EACH // 4)
            os.kill(paused, signal.SIGCONT)
            await until(lambda: complete(staying), 300)
            assert not [wrong for one in staying for wrong in one.wrong]
            assert sum(sum(one.read.values()) for one in staying) > len(staying) ** 2 * EACH // 4
            for one in talkers:
                await one.close()

        run(main(), 900)
        for node, one in tree.running.items():
            if node not in KILLED[1:]:
                assert one.stop() == 0
    family = find("locaps")
    collect(tree.journals, tmp_path / "trace", RunInfo("live", family.name, family.promises))
    report = check_directory(tmp_path / "trace")
    assert report.verdict is Verdict.VALID, report
