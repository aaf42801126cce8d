"""What is on its way to the disk: held in memory, counted, waited for, and given up by name when the disk is full."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from heapq import heappop, heappush

from cubecast.errors import NotDurable
from cubecast.ids import MessageId, NodeId, Topic
from cubecast.net.log.index import Hole
from cubecast.net.log.record import RECORD_OVERHEAD, Damage, Entry, Record, Run
from cubecast.net.log.writer import Item

LINGER = 0.5
"""Seconds that items nobody waits for may gather: a commit costs much the same, however large it is."""
ENOUGH = 4 << 20
"""Bytes that do not wait for more."""


class _OpenHole:
    """Grows while the disk is full. Of each publisher a range of counters is left, so its size is bounded."""

    def __init__(self, offset: int) -> None:
        self.first, self.last = offset, offset - 1
        self.runs: dict[tuple[NodeId, int], Run] = {}

    def add(self, first: MessageId, count: int) -> None:
        self.last += count
        known = self.runs.get(first[:2])
        self.runs[first[:2]] = Run(first if known is None else known.first, count + (known.many if known else 0))


class Pending:
    """Items get tickets in the order they come; `durable` of them are on the disk."""

    def __init__(self, budget: int, put: Callable[[Sequence[Item]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self.budget, self._put = budget, put
        self._turn: list[Item] = []
        self._turn_bytes = 0
        self._due: asyncio.TimerHandle | None = None
        self._is_urgent = False
        self._items: deque[tuple[Item, int]] = deque()
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._holes: dict[Topic, _OpenHole] = {}
        self.bytes = self.ticket = self.durable = 0
        self.trouble: NotDurable | None = None

    @property
    def has_room(self) -> bool:
        return self.bytes < self.budget

    def add(self, entry: Entry) -> None:
        if self.trouble is not None and not self.has_room:
            hole = self._holes.get(entry.topic)
            if hole is None:
                hole = self._holes[entry.topic] = _OpenHole(entry.offset)
            hole.add(entry.first, entry.many)
        else:
            self._add(entry, len(entry.block) + RECORD_OVERHEAD)

    def _add(self, item: Item, size: int) -> None:
        self.ticket += 1
        self.bytes += size
        self._items.append((item, size))
        self._turn.append(item)
        self._turn_bytes += size
        if self._turn_bytes > ENOUGH or self.bytes >= self.budget:
            self.hand_over()
        elif self._due is None:
            self._due = self._loop.call_later(LINGER, self.hand_over)

    def hand_over(self) -> None:
        """To the writer, as one transaction."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        items, self._turn, self._turn_bytes = self._turn, [], 0
        if items:
            self._put(items)

    def records(self, topic: Topic, offset: int) -> list[Record]:
        """Those not on the disk, from this offset on."""
        return [
            item.record().since(offset)
            for item, _ in self._items
            if isinstance(item, Entry) and item.topic == topic and item.last >= offset
        ]

    def synced(self, ticket: int) -> Awaitable[None]:
        future: asyncio.Future[None] = self._loop.create_future()
        if self.trouble is not None and (ticket > self.durable or self._holes):
            future.set_exception(self.trouble)
        elif ticket <= self.durable:
            future.set_result(None)
        else:
            heappush(self._waiters, (ticket, id(future), future))
            self._hurry()
        return future

    def _hurry(self) -> None:
        """Somebody waits: what this turn brings goes at its end."""
        if self._turn and not self._is_urgent:
            self._is_urgent = True
            self._loop.call_soon(self._end_of_turn)

    def _end_of_turn(self) -> None:
        self._is_urgent = False
        self.hand_over()

    def committed(self, count: int) -> Iterable[Item]:
        """So many are on the disk; the new ones among them. Where the disk was full, the holes are written next."""
        new = []
        while self.durable < count:
            item, size = self._items.popleft()
            self.bytes -= size
            self.durable += 1
            new.append(item)
        self.trouble = None
        holes, self._holes = self._holes, {}
        for topic, hole in holes.items():
            self._add(Hole(topic, _damage(topic, hole)), 0)
        while self._waiters and self._waiters[0][0] <= count:
            future = heappop(self._waiters)[2]
            if not future.done():
                future.set_result(None)
        return new

    def refused(self, trouble: NotDurable) -> None:
        self.trouble = trouble
        waiters, self._waiters = self._waiters, []
        for _, _, future in waiters:
            if not future.done():
                future.set_exception(trouble)


def _damage(topic: Topic, hole: _OpenHole) -> Damage:
    why = f"topic {topic}, offsets {hole.first} to {hole.last}: were delivered while the disk took nothing"
    return Damage(hole.first, hole.last, tuple(hole.runs.values()), why)
