"""Whatever happens around it, a subscriber's sequence is the node's sequence from its beginning on."""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from cubecast.log import store
from cubecast.log.store import Store
from cubecast.net.node.durable import replaying
from cubecast.net.settings.config import Retention
from support.memory_log import MemoryLog
from support.replays import Entry, LoggingNode, Reader, caught_up, turns
from support.running import run

TOPICS = ("a.x", "a.y", "b")
PATTERNS = (*TOPICS, "a.*", ">")


@dataclass
class Opened:
    reader: Reader
    pattern: str
    position: int
    """In the node's sequence, where it begins."""
    known: dict[Any, int]
    has_place: bool
    """It named its first offset, or began now: what is missing before the first message is announced, too."""


deliver = st.tuples(st.just("deliver"), st.sampled_from(TOPICS), st.integers(0, 2), st.integers(1, 4), st.booleans())
subscribe = st.tuples(
    st.just("subscribe"),
    st.sampled_from(PATTERNS),
    st.sampled_from(["beginning", "now", "offset", "time", "cut"]),
    st.floats(0, 1),
    st.integers(0, 3),
)
others = st.sampled_from([("resume",), ("turn",), ("turns",), ("forget",), ("restart",)])
steps = st.lists(st.one_of(deliver, deliver, subscribe, others), min_size=5, max_size=60)


class World:
    def __init__(self, store: Any, recent: int) -> None:
        self.node = LoggingNode(store, recent)
        self.opened: list[Opened] = []

    async def step(self, name: str, *arguments: Any) -> None:
        match name:
            case "deliver":
                topic, source, count, missed = arguments
                self.node.deliver(topic, source, count, missed=2 if missed else 0)
            case "subscribe":
                self.subscribe(*arguments)
            case "resume":
                for one in self.opened:
                    if one.reader.is_paused:
                        one.reader.resume()
            case "turn" | "turns":
                await turns(1 if name == "turn" else 30)
            case "forget":
                await self.forget()
            case "restart":
                self.node.port.shut(None)
                await self.restart_store()
                self.node.open_port()

    async def restart_store(self) -> None:
        """It forgets nothing."""

    async def forget(self) -> None:
        for topic in self.node.store.topics():
            first, last = self.node.store.bounds(topic)
            self.node.store.forget(topic, (first + last) // 2)

    def subscribe(self, pattern: str, how: str, part: float, pause_after: int) -> None:
        sequence, times = self.node.sequence, self.node.times
        position, since, known = int(part * len(sequence)), how, {}
        if how == "beginning":
            position = 0
        elif how == "now" or not sequence or position == len(sequence):
            position, since = len(sequence), "now"
        elif how == "time":
            since = times[position]
            position = times.index(since)
        elif how == "offset":
            pattern, since = sequence[position].topic, sequence[position].offset
        else:
            for entry in sequence[:position]:
                known[entry.topic, entry.id.source, 0] = entry.id.counter
            since, position = known, 0
        reader = self.node.subscribe(pattern, since, pause_after)
        self.opened.append(Opened(reader, pattern, position, known, how == "offset"))

    def check(self) -> None:
        for one in self.opened:
            due = self.node.expected(one.pattern, one.position)
            due = [entry for entry in due if entry.id.counter > one.known.get((entry.topic, entry.id.source, 0), 0)]
            check_order(one.reader, due)
            for topic in TOPICS:
                of_topic = [entry for entry in due if entry.topic == topic]
                check_topic(one, topic, of_topic, self.node.store.bounds(topic)[0])


def check_order(reader: Reader, due: list[Entry]) -> None:
    """All of it is due, and in this order; nothing comes twice."""
    rest = iter(due)
    assert all(entry in rest for entry in reader.entries)


def check_topic(one: Opened, topic: str, due: list[Entry], first_kept: int) -> None:
    """What is missing was not kept any more, and between two messages it is announced."""
    events = [event for event in one.reader.got if event.topic == topic]
    gone: set[int] = set()
    missing = list(due)
    is_begun = one.has_place
    for event in events:
        if isinstance(event, Entry):
            place = missing.index(event)
            skipped, missing = missing[:place], missing[place + 1 :]
            assert all(entry.offset in gone or (not is_begun and entry.offset < first_kept) for entry in skipped)
            is_begun, gone = True, set()
        elif event.offsets is not None:
            gone.update(range(event.offsets[0], event.offsets[1] + 1))
        else:
            ids = {(run.source, counter) for run in event.runs for counter in range(run.first, run.last + 1)}
            gone.update(entry.offset for entry in due if (entry.id.source, entry.id.counter) in ids)
    assert one.reader.port is None or all(entry.offset < first_kept for entry in missing)


@given(steps, st.sampled_from([0, 500, 1 << 20]), st.integers(0, 3), st.sampled_from([1, 30, 1 << 20]))
@settings(max_examples=200)
def test_a_subscriber_gets_the_sequence_of_its_node_from_its_beginning_on(script, recent, disk_turns, chunk):
    async def main():
        world = World(MemoryLog(disk_turns), recent)
        for step in script:
            await world.step(*step)
        await caught_up([one.reader for one in world.opened if one.reader.port is not None])
        world.check()

    with mock.patch.object(replaying, "CHUNK", chunk):
        run(main())


class WorldOnDisk(World):
    """With the log that nodes have; what it keeps, its own retention decides."""

    @staticmethod
    async def open(directory: Path) -> Store:
        return await Store.open(directory, retention={">": Retention(max_messages=8)})

    async def restart_store(self) -> None:
        await self.node.store.close()
        self.node.store = await self.open(self.node.store.directory)

    async def forget(self) -> None:
        """Retention looks at what is on the disk, when it is time to."""
        await self.node.store.synced(self.node.store.ticket)
        await asyncio.sleep(0)


@given(steps, st.sampled_from([0, 500]), st.sampled_from([1, 1 << 20]))
@settings(max_examples=15)
def test_it_is_the_same_with_a_log_on_disk(script, recent, chunk):
    async def main(directory):
        world = WorldOnDisk(await WorldOnDisk.open(directory), recent)
        for step in script:
            await world.step(*step)
        await caught_up([one.reader for one in world.opened if one.reader.port is not None])
        world.check()
        await world.node.store.close()

    patches = mock.patch.object(replaying, "CHUNK", chunk), mock.patch.object(store, "SWEEP_EVERY", 0.001)
    with tempfile.TemporaryDirectory() as directory, patches[0], patches[1]:
        run(main(Path(directory)))
