"""Held messages, indexed by the one dependency each is waiting for.

A message with several missing dependencies waits for one of them at a time; when that one is satisfied its owner looks
for the next. So the work is proportional to what is woken, never to what is held.
"""

from heapq import heappop, heappush
from typing import Generic, TypeVar

from cubecast.ids import Counter

Key = TypeVar("Key")
Held = TypeVar("Held")


class PendingBuffer(Generic[Key, Held]):
    """`Key` names a publisher; an entry waits until that publisher's messages up to some counter are accounted for."""

    __slots__ = ("_arrivals", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[Key, list[tuple[Counter, int, Held]]] = {}
        """By publisher, a heap of (counter, order of arrival, message). Empty when nothing is held."""
        self._arrivals = 0

    def __len__(self) -> int:
        return sum(len(heap) for heap in self.waiting.values())

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def hold(self, publisher: Key, counter: Counter, message: Held) -> None:
        """Keep the message until `release` is told about this counter of this publisher."""
        self._arrivals += 1
        heappush(self.waiting.setdefault(publisher, []), (counter, self._arrivals, message))

    def release(self, publisher: Key, counter: Counter) -> list[Held]:
        """Everything that waited for this publisher's messages up to `counter`; lowest first, then oldest first."""
        heap = self.waiting.get(publisher)
        if heap is None:
            return []
        released = []
        while heap and heap[0][0] <= counter:
            released.append(heappop(heap)[2])
        if not heap:
            del self.waiting[publisher]
        return released

    def clear(self) -> None:
        self.waiting.clear()

    def entries(self) -> list[tuple[Key, Counter, Held]]:
        """(publisher, missing counter, message) of all that is held, for explanations and invariants."""
        return [(publisher, counter, held) for publisher, heap in self.waiting.items() for counter, _, held in heap]
