"""What replaying asks of a store, and a store together with the newest of it in memory.

A log holds what its node delivered, in the order it delivered it. Every message has an offset, its place among those
of its topic, counted without holes. Records have times that never fall, no two the same, so that they tell the order
across topics as well. Offsets and order are the node's own: another node delivers in another order.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from time import time
from typing import Protocol

from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.net.log.record import RECORD_OVERHEAD, Cut, Damage, Entry, Packed, Record
from cubecast.net.port import Logged

RECENT = 2 << 20
"""Bytes of the newest records that are kept in memory, so that whoever is nearly live gets there in one step."""
TICK = 1e-6
"""Seconds; the smallest difference between two times that both floats and people can tell."""


Mend = Callable[[Topic], Awaitable[int]]
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
    def cut(self, topic: Topic) -> Cut: ...
    async def read(self, topic: Topic, offset: int, most_bytes: int) -> list[Record]: ...
    async def offset_at(self, topic: Topic, time: float) -> int: ...
    async def offset_after_cut(self, topic: Topic, cut: Cut) -> int: ...
    def damaged(self, topic: Topic) -> list[Damage]: ...
    async def repair(self, records: Sequence[Record]) -> int: ...


class History:
    """All that a node delivered and still has."""

    def __init__(self, store: Store, recent: int = RECENT) -> None:
        self.store, self._budget = store, recent
        self.mend: Mend | None = None
        """Tries to get what is damaged from peers, where there are any."""
        self.newest_at = store.newest_at
        """The time of the last record."""
        self._recent: deque[Entry] = deque()
        self._by_topic: dict[Topic, deque[Entry]] = {}
        self._bytes = 0

    def append(self, topic: Topic, first: MessageId, packed: Packed) -> Logged:
        at = self.newest_at = max(time(), self.newest_at + TICK)
        entry = self.store.append_packed(topic, first, packed, at)
        self._recent.append(entry)
        ones = self._by_topic.get(topic)
        if ones is None:
            ones = self._by_topic[topic] = deque()
        ones.append(entry)
        self._bytes += len(packed[1]) + RECORD_OVERHEAD
        if self._bytes > self._budget:
            self._forget()
        return Logged(entry[1], at)

    def _forget(self) -> None:
        while self._bytes > self._budget:
            oldest = self._recent.popleft()
            self._bytes -= len(oldest.block) + RECORD_OVERHEAD
            ones = self._by_topic[oldest.topic]
            ones.popleft()
            if not ones:
                del self._by_topic[oldest.topic]

    def recent(self, topic: Topic, offset: int) -> list[Record] | None:
        """From this offset on; None when that is too long ago for memory."""
        if offset > self.store.bounds(topic)[1]:
            return []
        ones = self._by_topic.get(topic)
        if ones is None or ones[0].offset > offset:
            return None
        found: list[Record] = []
        for entry in reversed(ones):
            if entry.last < offset:
                break
            found.append(entry.record().since(offset))
        found.reverse()
        return found

    async def read(self, topic: Topic, offset: int, most_bytes: int) -> list[Record]:
        recent = self.recent(topic, offset)
        return await self.store.read(topic, offset, most_bytes) if recent is None else recent

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
