"""A node's port with a log and without a network: what is delivered is said here, what readers get is written down."""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from cubecast.errors import CubecastError
from cubecast.ids import MessageId, Topic
from cubecast.log.history import History
from cubecast.net.node.durable.recorder import Recorder
from cubecast.net.node.local_port import LocalPort
from cubecast.net.port.port import GapNotice, Logged, start
from cubecast.net.settings.config import NodeConfig
from cubecast.patterns import matcher
from cubecast.protocol.families import find
from cubecast.wire.codec import codec_of
from support.hosts import Alone


class Entry(NamedTuple):
    """A message, as the node delivered it."""

    topic: Topic
    offset: int
    id: MessageId
    payload: bytes


class Reader:
    """A `Sink` that writes down, and asks for a pause after every so many batches."""

    def __init__(self, pause_after: int = 0) -> None:
        self.port: LocalPort | None = None
        self.number = 0
        self.got: list[Entry | GapNotice] = []
        self.times: list[float] = []
        self.is_ready = self.is_live = self.is_paused = False
        self.error: CubecastError | None = None
        self._pause_after, self._batches = pause_after, 0

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        assert logged is not None and not self.is_paused
        source, incarnation, counter = first
        for place, payload in enumerate(payloads):
            identity = MessageId(source, incarnation, counter + place)
            self.got.append(Entry(topic, logged.offset + place, identity, payload))
            self.times.append(logged.at)
        self._batches += 1
        if self._pause_after and self._batches % self._pause_after == 0:
            self.pause()

    def pause(self) -> None:
        self.is_paused = True
        if self.port is not None:
            self.port.pause(self.number)

    def resume(self) -> None:
        self.is_paused = False
        if self.port is not None:
            self.port.resume(self.number)

    def on_ready(self) -> None:
        self.is_ready = True

    def on_live(self, known: Any) -> None:
        self.is_live, self.known = True, dict(known)

    def on_gap(self, gap: GapNotice) -> None:
        self.got.append(gap)

    def on_end(self, error: CubecastError | None) -> None:
        self.error, self.port = error, None

    @property
    def has_all(self) -> bool:
        """Nothing is left for it in the log."""
        return self.port is not None and self.port.subscribing._replays[self.number]._is_live

    @property
    def entries(self) -> list[Entry]:
        return [one for one in self.got if isinstance(one, Entry)]

    @property
    def gaps(self) -> list[GapNotice]:
        return [one for one in self.got if isinstance(one, GapNotice)]


class LoggingNode:
    """`deliver` is what the machine would say."""

    def __init__(self, store: Any, recent: int = 1 << 20) -> None:
        self.store = store
        self.sequence: list[Entry] = []
        self.times: list[float] = []
        self._counters: dict[tuple[Topic, int], int] = {}
        self._recent = recent
        self.open_port()

    def open_port(self) -> None:
        """Also a restart: the port is new, the log is not."""
        self.port = LocalPort(NodeConfig(), Alone())
        recorder = Recorder(self.store, [">"], codec_of(find(NodeConfig().protocol)))
        recorder.history = self.history = History(self.store, recent=self._recent)
        self.port.open(recorder)
        recorder.catch_up._held = None  # there is nobody to fill the log from

    def deliver(self, topic: Topic, source: int = 0, count: int = 1, missed: int = 0) -> None:
        """`missed` are published while the node does not listen."""
        counter = self._counters.get((topic, source), 0) + missed + 1
        self._counters[topic, source] = counter + count - 1
        offset = self.store.bounds(topic)[1] + 1
        payloads = [f"{topic} {source} {counter + place}".encode() for place in range(count)]
        for place, payload in enumerate(payloads):
            self.sequence.append(Entry(topic, offset + place, MessageId(source, 0, counter + place), payload))
        self.port.on_interest_matched(topic)  # whoever selects it by a pattern hears of it
        self.port.on_deliver(topic, MessageId(source, 0, counter), payloads)
        self.times += [self.history.newest_at] * count

    def subscribe(self, pattern: str, since: Any, pause_after: int = 0) -> Reader:
        reader = Reader(pause_after)
        reader.number = self.port.subscribe(pattern, reader, start(since))
        reader.port = self.port
        return reader

    def expected(self, pattern: str, position: int) -> list[Entry]:
        """From this place of the node's sequence on."""
        matches = matcher(pattern)
        return [entry for entry in self.sequence[position:] if matches(entry.topic)]


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def caught_up(readers: Sequence[Reader], deadline: float = 30.0) -> None:
    """Everybody reads on until nothing is left."""
    async with asyncio.timeout(deadline):
        while any(reader.is_paused or not reader.has_all for reader in readers):
            for reader in readers:
                if reader.is_paused:
                    reader.resume()
            await asyncio.sleep(0)
