"""What a peer's log has and this node's has not, on its way into this node's: a `Sink` at the peer.

Records come in the peer's order, which has no effect before its cause. Where the peer itself lacks something it says so
first; then another peer may have it, so this one's records are taken further only when no other one can be asked.
Follows decision 0040.
"""

import asyncio
import logging
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import IO, NamedTuple, Protocol

import msgspec

from cubecast.addresses import Address
from cubecast.errors import BadInput, CubecastError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.log.history import History
from cubecast.log.record import RECORD_OVERHEAD, Damage, Record
from cubecast.net.port.chunks import weight
from cubecast.net.port.port import GapNotice, Logged, Port, PublisherCut, Run, from_cut

BUDGET = 8 << 20
_length = Struct("<I")


class Held(NamedTuple):
    topic: Topic
    first: MessageId
    payloads: list[bytes]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Held).decode


class Holding:
    """A queue. The file is gone with the process: what was held and never logged was never promised."""

    def __init__(self, directory: Path | None, budget: int = BUDGET) -> None:
        self._directory, self._budget = directory, budget
        self._items: deque[tuple[Held, int]] = deque()
        self._bytes = 0
        self._file: IO[bytes] | None = None
        self._read = self._written = 0
        self.firsts: dict[tuple[Topic, int, int], Counter] = {}
        """Of each publisher the first message that came to wait."""

    def put(self, topic: Topic, first: MessageId, payloads: Sequence[bytes]) -> None:
        item, size = Held(topic, first, list(payloads)), weight(payloads) + RECORD_OVERHEAD
        self.firsts.setdefault((topic, first[0], first[1]), first[2])
        if self._file is None and self._bytes + size <= self._budget:
            self._items.append((item, size))
            self._bytes += size
        else:
            self._write(_encode(item))

    def _write(self, content: bytes) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115 - open as long as it is needed
            self._read = self._written = 0
        self._file.seek(self._written)
        self._file.write(_length.pack(len(content)) + content)
        self._written += _length.size + len(content)

    def get(self) -> Held | None:
        """The next one; None when nothing waits."""
        if self._items:
            item, size = self._items.popleft()
            self._bytes -= size
            return item
        if self._file is None:
            return None
        self._file.seek(self._read)
        (length,) = _length.unpack(self._file.read(_length.size))
        item = _decode(self._file.read(length))
        self._read += _length.size + length
        if self._read == self._written:
            self._file.close()
            self._file = None
        return item


SILENT_FOR = 5.0
"""Seconds a peer may take for the next piece, before another one is asked."""
SETTLING = 0.2
"""Seconds in which what was published before everybody knew of this node reaches the peer."""
UNCOVERED_FOR = 1.0
"""Seconds to wait for messages that came before those held, when the peer has not got them yet itself."""
LOOK_EVERY = 0.01
AT_ONCE = 256
"""Deliveries released in one turn of the event loop."""

Deliver = Callable[[Topic, MessageId, Sequence[bytes]], None]
Publisher = tuple[Topic, NodeId, Incarnation]


class PeerPort(Port, Protocol):
    """What a peer offers, who keeps a log of its own."""

    @property
    def node(self) -> str:
        """The peer, for people."""

    async def start(self, timeout: float = ...) -> None:
        """Unreachable when it does not answer in time."""


class Dial(Protocol):
    def __call__(self, address: Address, *, name: str, patience: float, fills: bool = False) -> PeerPort:
        """The port of a peer, not started yet. `fills`: answer even if you are not ready for clients."""


@dataclass(frozen=True)
class Surroundings:
    """What filling a log needs of its node."""

    members: Callable[[], dict[bytes, Address]]
    """Where the others are, as far as they are held to live, by what each process drew when it began."""
    dial: Dial
    deliver: Deliver
    announce: Callable[[GapNotice], None]
    is_complete: Callable[[], bool]
    """Is everything published from now on addressed to this node?"""
    has_room: Callable[[], bool]
    """Can log and subscribers take more?"""

    def peers(self) -> Sequence[Address]:
        return list(self.members().values())


class Incomplete(CubecastError):  # noqa: N818 - a state of the peer
    """The peer's log has not got everything either."""


class Refill:
    """A `Sink` for what peers' logs have."""

    def __init__(self, history: History, held: Holding, around: Surroundings) -> None:
        self._held, self._around = held, around
        self._last = history.known(history.store.topics())
        """What is in the log, as it grows, and what was given up."""
        self._lives: dict[tuple[Topic, NodeId], Incarnation] = {}
        for topic, source, incarnation in self._last:
            self._lives[topic, source] = incarnation
        self.messages = 0
        self.given_up: dict[Publisher, Counter] = {}
        """What no peer has, as far as it was announced."""
        self._takes_holes = True
        self._live_since: float | None = None
        self._error: CubecastError | None = None
        self._last_word = 0.0

    def lacks(self, known: PublisherCut) -> int:
        """How many messages a log that has all this has in addition, at least."""
        return sum(
            max(0, counter - self._last.get((topic, source, incarnation), 0))
            for (topic, source, incarnation), counter in known.items()
            if incarnation >= self._lives.get((topic, source), incarnation)
        )

    def give_up(self, publishers: PublisherCut) -> None:
        """What was announced before is not asked for again."""
        for publisher, counter in publishers.items():
            self._last[publisher] = max(counter, self._last.get(publisher, 0))

    # What the peer says

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        self._last_word = asyncio.get_running_loop().time()
        if self._error is None:
            self.messages += self._deliver(topic, first, payloads)

    def _deliver(self, topic: Topic, first: MessageId, payloads: Sequence[bytes]) -> int:
        """How many of them were news."""
        publisher = topic, first.source, first.incarnation
        skipped = max(0, self._last.get(publisher, 0) - first.counter + 1)
        if skipped >= len(payloads):
            return 0
        self._last[publisher] = first.counter + len(payloads) - 1
        self._around.deliver(topic, first._replace(counter=first.counter + skipped), payloads[skipped:])
        return len(payloads) - skipped

    def on_ready(self) -> None: ...
    def on_live(self, known: PublisherCut) -> None:
        self._live_since = asyncio.get_running_loop().time()

    def on_gap(self, gap: GapNotice) -> None:
        """The peer does not have them either, or cannot tell whether they belong here."""
        runs = tuple(run for run in gap.runs if self._last.get((gap.topic, *run[:2]), 0) < run.last)
        if not runs or self._error is not None:
            return
        if not self._takes_holes:
            self._error = Incomplete(f"{gap.topic}: {gap.reason}")
            return
        count = sum(run.last - run.first + 1 for run in runs)
        for source, incarnation, _, last in runs:
            publisher = gap.topic, source, incarnation
            self._last[publisher] = self.given_up[publisher] = last
        self._around.announce(GapNotice(gap.topic, (), gap.reason, runs, count))

    def on_end(self, error: CubecastError | None) -> None:
        self._error = self._error or error or BadInput("the peer ended it")

    # Getting it

    async def fetch(self, port: Port, pattern: str, *, takes_holes: bool = True) -> None:
        """Until the peer has no more, and nothing is missing before what is held; raises when it cannot serve.

        `Incomplete` where the peer lacks something, unless holes are taken as well.
        """
        self._live_since = self._error = None
        self._takes_holes = takes_holes
        loop = asyncio.get_running_loop()
        self._last_word = loop.time()
        number = port.subscribe(pattern, self, from_cut(self._last, is_causal=True))
        is_paused = False
        while not self._is_enough(looked := loop.time()):
            await asyncio.sleep(LOOK_EVERY)
            self._forgive(loop.time() - looked - LOOK_EVERY)
            if self._error is not None:
                error, self._error = self._error, Incomplete("it is not asked any more")
                port.unsubscribe(number)
                raise error
            if is_paused == self._around.has_room():
                is_paused = not is_paused
                port.pause(number) if is_paused else port.resume(number)
                self._last_word = loop.time()
            if self._live_since is None and not is_paused and loop.time() - self._last_word > SILENT_FOR:
                raise BadInput(f"it said nothing for {SILENT_FOR} s")
        port.unsubscribe(number)

    def _forgive(self, late: float) -> None:
        """By how much this node came late to look: as long as it stood still itself no peer was silent."""
        if late > 0:
            self._last_word += late
            if self._live_since is not None:
                self._live_since += late

    def _is_enough(self, now: float) -> bool:
        """Whether all is here that can be expected to come."""
        if self._error is not None or self._live_since is None or now - self._live_since < SETTLING:
            return False
        return now - self._live_since > UNCOVERED_FOR or not self.uncovered()

    def uncovered(self) -> list[GapNotice]:
        """What is missing before those that are held."""
        return [
            _missing(publisher, self._last.get(publisher, 0) + 1, first - 1)
            for publisher, first in self._held.firsts.items()
            if self._last.get(publisher, 0) < first - 1
        ]

    def missed(self, notice: GapNotice) -> None:
        """This node named these as missing before peers were asked: what none of them has is."""
        for source, incarnation, first, last in (*notice.runs, *(Run(*one, one.counter) for one in notice.missing)):
            publisher = notice.topic, source, incarnation
            begin = max(first, self._last.get(publisher, 0) + 1)
            if begin <= last:
                self._last[publisher] = self.given_up[publisher] = last
                run = Run(source, incarnation, begin, last)
                self._around.announce(GapNotice(notice.topic, (), notice.reason, (run,), last - begin + 1))

    async def release(self) -> None:
        """What is held follows, without what the peer sent already; what comes meanwhile is held behind it."""
        self._error = None
        while True:
            for _ in range(AT_ONCE):
                held = self._held.get()
                if held is None:
                    return
                self._deliver(*held)
            await asyncio.sleep(0 if self._around.has_room() else LOOK_EVERY)


def _missing(publisher: Publisher, first: Counter, last: Counter) -> GapNotice:
    topic, source, incarnation = publisher
    reason = "published while this node was away, and no peer that lives has them"
    return GapNotice(topic, (), reason, (Run(source, incarnation, first, last),), last - first + 1)


# Damaged ranges of a log are asked for at peers: by the names of their messages, since offsets are each node's own.

log = logging.getLogger(__name__)

CONNECT_TIME = 2.0
PATIENCE = 10.0
"""Seconds for one peer to tell what it has of a topic."""
MOST_BYTES = 64 << 20
"""Of messages that are collected for one topic at a time."""


class Wanted:
    """A `Sink` that keeps what is asked for and lets the rest pass."""

    def __init__(self, topic: Topic, damages: Sequence[Damage]) -> None:
        self.topic = topic
        self._runs = [(run.first, run.many) for damage in damages for run in damage.ids]
        self._left = sum(count for _, count in self._runs)
        self._bytes = 0
        self.records: list[Record] = []
        self.done = asyncio.get_running_loop().create_future()

    def behind(self, known: PublisherCut) -> dict[tuple[Topic, NodeId, Incarnation], Counter]:
        """A cut that has everything but these, and what their publishers said after them."""
        cut = dict(known)
        for (source, incarnation, counter), _ in self._runs:
            publisher = self.topic, source, incarnation
            cut[publisher] = min(counter - 1, cut.get(publisher, counter - 1))
        return cut

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        end = first.counter + len(payloads)
        wanted = 0
        for (source, incarnation, counter), count in self._runs:
            if (source, incarnation) == first[:2]:
                wanted += max(0, min(end, counter + count) - max(first.counter, counter))
        if wanted and not self.done.done():
            self.records.append(Record(topic, first, list(payloads), *(logged or (0, 0.0))))
            self._left -= wanted
            self._bytes += weight(payloads)
            if self._left <= 0 or self._bytes > MOST_BYTES:
                self.done.set_result(None)

    def on_ready(self) -> None: ...
    def on_gap(self, gap: GapNotice) -> None: ...
    def on_live(self, known: PublisherCut) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def on_end(self, error: CubecastError | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or BadInput("the peer ended it"))


class Repair:
    """Asks one peer after the other for what is damaged, and never again for what none of them had."""

    def __init__(
        self,
        history: History,
        peers: Callable[[], Sequence[Address]],
        dial: Dial,
        name: str,
    ) -> None:
        self._history, self._peers, self._dial, self._name = history, peers, dial, name
        self._in_vain: set[tuple[Topic, int]] = set()
        self._lock = asyncio.Lock()

    async def __call__(self, topic: Topic) -> int:
        """How many ranges of the topic are whole again."""
        async with self._lock:
            repaired = 0
            for address in self._peers():
                damages = self._missing(topic)
                if not damages:
                    break
                try:
                    repaired += await self._from(address, topic, damages)
                except (CubecastError, OSError, TimeoutError) as error:
                    log.info("%s: nothing to repair the log with at %s: %s", topic, address, error)
            self._in_vain.update((topic, damage.first) for damage in self._missing(topic))
            return repaired

    def _missing(self, topic: Topic) -> list[Damage]:
        damages = self._history.store.damaged(topic)
        return [one for one in damages if one.ids and (topic, one.first) not in self._in_vain]

    async def _from(self, address: Address, topic: Topic, damages: Sequence[Damage]) -> int:
        port = self._dial(address, name=self._name, patience=CONNECT_TIME)
        try:
            await port.start(CONNECT_TIME)
            wanted = Wanted(topic, damages)
            port.subscribe(topic, wanted, from_cut(wanted.behind(self._history.known([topic]))))
            async with asyncio.timeout(PATIENCE):
                await wanted.done
            repaired = await self._history.store.repair(wanted.records)
            log.info("%s: %d of %d damaged ranges repaired from %s", topic, repaired, len(damages), port.node)
            return repaired
        finally:
            await port.close()
