"""What replaying asks of a store, and a store together with the newest of it in memory.

A log holds what its node delivered, in the order it delivered it. Every message has an offset, its place among those
of its topic, counted without holes. Records have times that never fall, no two the same, so that they tell the order
across topics as well. Offsets and order are the node's own: another node delivers in another order.
"""

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from operator import attrgetter
from time import time
from typing import Protocol, TypeVar

from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.log.record import RECORD_OVERHEAD, Cut, Damage, Entry, Logged, Packed, Record, make_tuple

RECENT = 2 << 20
"""Bytes of the newest records that are kept in memory at most: a reader that is nearly live gets there in one step."""
TICK = 1e-6
"""Seconds; the smallest difference between two times that both floats and people can tell."""


Answer = TypeVar("Answer")
RepairTopic = Callable[[Topic], Awaitable[int]]
"""How many damaged ranges of the topic are whole again."""


class Store(Protocol):
    """What is appended can be read at once. `DamagedLog` names offsets that cannot be read."""

    @property
    def newest_at(self) -> float: ...
    @property
    def has_room(self) -> bool: ...
    def append_packed(self, topic: Topic, first: MessageId, packed: Packed, at: float) -> Entry: ...
    def bounds(self, topic: Topic) -> tuple[int, int]: ...
    def topics(self) -> list[Topic]: ...
    @property
    def identity(self) -> str: ...
    def durable_end(self, topic: Topic) -> int: ...
    def cut(self, topic: Topic) -> Cut: ...
    async def read(self, topic: Topic, offset: int, most_bytes: int) -> list[Record]: ...
    async def offset_at(self, topic: Topic, time: float) -> int: ...
    async def entries(self, topic: Topic, offset: int, most_bytes: int, content: bool = True) -> list[Entry]: ...
    async def in_reader(self, work: Callable[[], Answer]) -> Answer: ...
    async def offset_after_cut(self, topic: Topic, cut: Cut) -> int: ...
    async def offset_before_cut(self, topic: Topic, cut: Cut) -> int: ...
    async def cut_at(self, topic: Topic, offset: int) -> Cut: ...
    def damaged(self, topic: Topic) -> list[Damage]: ...
    async def repair(self, records: Sequence[Record]) -> int: ...


async def _repairs_nothing(topic: Topic) -> int:
    return 0


class History:
    """All that a node delivered and still has."""

    def __init__(self, store: Store, repair: RepairTopic = _repairs_nothing, recent: int = RECENT) -> None:
        self.store, self._half = store, recent // 2
        self.repair = repair
        """Tries to get what is damaged in a topic from peers; how many ranges are whole again."""
        self.newest_at = store.newest_at
        """The time of the last record."""
        self._older: dict[Topic, list[Entry]] = {}
        self._recent: dict[Topic, list[Entry]] = {}
        """By topic. When these are half of what is kept they become the older ones, and the older ones go."""
        self._bytes = 0

    def append(self, topic: Topic, first: MessageId, packed: Packed) -> Logged:
        at, after = time(), self.newest_at + TICK
        if at < after:
            at = after
        self.newest_at = at
        entry = self.store.append_packed(topic, first, packed, at)
        ones = self._recent.get(topic)
        if ones is None:
            ones = self._recent[topic] = []
        ones.append(entry)
        self._bytes += len(packed[1]) + RECORD_OVERHEAD
        if self._bytes > self._half:
            self._older, self._recent, self._bytes = self._recent if self._half else {}, {}, 0
        return make_tuple(Logged, (entry[1], at))

    def recent(self, topic: Topic, offset: int) -> list[Record] | None:
        """From this offset on; None when that is too long ago for memory."""
        if offset > self.store.bounds(topic)[1]:
            return []
        older, recent = self._older.get(topic, []), self._recent.get(topic, [])
        oldest = next(chain(older, recent), None)
        if oldest is None or oldest.offset > offset:
            return None
        found: list[Record] = []
        for entry in chain(reversed(recent), reversed(older)):
            if entry.last < offset:
                break
            found.append(entry.record().since(offset))
        found.reverse()
        return found

    async def read(self, topic: Topic, offset: int, most_bytes: int) -> list[Record]:
        recent = self.recent(topic, offset)
        return await self.store.read(topic, offset, most_bytes) if recent is None else recent

    async def entries(self, topic: Topic, offset: int, most_bytes: int, content: bool = True) -> list[Entry]:
        """Packed, of which the first may begin before the offset; more bytes than that only when memory has them."""
        recent = self._recent_entries(topic, offset)
        return await self.store.entries(topic, offset, most_bytes, content) if recent is None else recent

    def _recent_entries(self, topic: Topic, offset: int) -> list[Entry] | None:
        entries = [*self._older.get(topic, ()), *self._recent.get(topic, ())]
        if not entries or entries[0].offset > offset:
            return None
        return entries[max(0, bisect_right(entries, offset, key=attrgetter("offset")) - 1) :]

    def bounds(self, topic: Topic) -> tuple[int, int]:
        return self.store.bounds(topic)

    def is_at_end(self, topic: Topic, offset: int) -> bool:
        return offset > self.store.bounds(topic)[1]

    def known(self, topics: Sequence[Topic]) -> dict[tuple[Topic, NodeId, Incarnation], Counter]:
        """Of each publisher the last message, and with it all before."""
        return {
            (topic, source, incarnation): counter
            for topic in topics
            for source, (incarnation, counter) in self.store.cut(topic).items()
        }
