"""What is on its way to the disk: held in memory, counted, waited for, and given up by name when the disk is full.

Follows decision 0034.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from cubecast.errors import NotDurable
from cubecast.ids import MessageId, NodeId, Topic
from cubecast.log.index import Hole
from cubecast.log.record import RECORD_OVERHEAD, Damage, Entry, Record, Run


@dataclass(slots=True, eq=False)
class Gathered:
    entries: list[Entry] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    bytes: int = 0
    """Of memory."""

    def __len__(self) -> int:
        return len(self.entries) + len(self.holes)


LINGER = 0.5
"""Seconds that items without a waiting publisher may gather: a commit costs much the same, however large it is."""
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
    """Batches and holes get tickets in the order they come; `durable` of them are on the disk.

    `on_full` is called when there is no room left although the disk takes what it gets.
    """

    def __init__(self, budget: int, put: Callable[[Gathered], None], on_full: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._put, self._on_full = put, on_full
        self._turn = Gathered()
        self._due: asyncio.TimerHandle | None = None
        self._is_urgent = False
        self._handed_over: deque[Gathered] = deque()
        self._tickets = self._bytes = 0
        """Those handed over: how many were ever given, and what is not on the disk yet."""
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._holes: dict[Topic, _OpenHole] = {}
        self.durable = 0
        self.trouble: NotDurable | None = None
        self.set_budget(budget)

    def set_budget(self, budget: int) -> None:
        self._budget = budget
        self._look_at_room()

    def _look_at_room(self) -> None:
        self._most = min(ENOUGH, self._budget - self._bytes)
        """Bytes to gather before the writer gets them."""

    @property
    def bytes(self) -> int:
        return self._bytes + self._turn.bytes

    @property
    def ticket(self) -> int:
        return self._tickets + len(self._turn)

    @property
    def has_room(self) -> bool:
        return self.bytes < self._budget

    def add(self, entry: Entry) -> None:
        if self.trouble is not None and not self.has_room:
            hole = self._holes.get(entry.topic)
            if hole is None:
                hole = self._holes[entry.topic] = _OpenHole(entry.offset)
            hole.add(entry.first, entry.many)
            return
        turn = self._turn
        turn.entries.append(entry)
        turn.bytes += len(entry[5]) + RECORD_OVERHEAD
        if turn.bytes >= self._most:
            self.hand_over()
        elif self._due is None:
            self._due = self._loop.call_later(LINGER, self.hand_over)

    def hand_over(self) -> None:
        """To the writer, as one transaction."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        turn = self._turn
        if turn:
            self._turn = Gathered()
            self._handed_over.append(turn)
            self._tickets += len(turn)
            self._bytes += turn.bytes
            self._look_at_room()
            self._put(turn)
            if self._most <= 0 and self.trouble is None:
                self._on_full()

    def records(self, topic: Topic, offset: int) -> list[Record]:
        """Those not on the disk, from this offset on."""
        return [entry.record().since(offset) for entry in self.entries(topic, offset)]

    def entries(self, topic: Topic, offset: int) -> list[Entry]:
        """The same, packed and whole."""
        return [
            entry
            for gathered in (*self._handed_over, self._turn)
            for entry in gathered.entries
            if entry.topic == topic and entry.last >= offset
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
        """A publisher waits: what this turn brings goes at its end."""
        if self._turn and not self._is_urgent:
            self._is_urgent = True
            self._loop.call_soon(self._end_of_turn)

    def _end_of_turn(self) -> None:
        self._is_urgent = False
        self.hand_over()

    def committed(self, count: int) -> list[Gathered]:
        """So many are on the disk; the new ones among them. Where the disk was full, the holes are written next."""
        new = []
        while self.durable < count:
            gathered = self._handed_over.popleft()
            self._bytes -= gathered.bytes
            self.durable += len(gathered)
            new.append(gathered)
        self._look_at_room()
        self.trouble = None
        self._write_holes()
        while self._waiters and self._waiters[0][0] <= count:
            future = heappop(self._waiters)[2]
            if not future.done():
                future.set_result(None)
        return new

    def _write_holes(self) -> None:
        if self._holes:
            self._turn.holes += [Hole(topic, _damage(topic, hole)) for topic, hole in self._holes.items()]
            self._holes = {}
            if self._due is None:
                self._due = self._loop.call_later(LINGER, self.hand_over)

    def refused(self, trouble: NotDurable) -> None:
        self.trouble = trouble
        waiters, self._waiters = self._waiters, []
        for _, _, future in waiters:
            if not future.done():
                future.set_exception(trouble)


def _damage(topic: Topic, hole: _OpenHole) -> Damage:
    why = f"topic {topic}, offsets {hole.first} to {hole.last}: were delivered while the disk took nothing"
    return Damage(hole.first, hole.last, tuple(hole.runs.values()), why)
