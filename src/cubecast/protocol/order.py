"""What orders messages, whatever the family: the buffer of those that wait, causal barriers, and vector clocks."""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Generic, TypeAlias, TypeVar

from cubecast.ids import Counter, MessageId

# Held messages, indexed by the one dependency each is waiting for.
#
# A message with several missing dependencies waits for one of them at a time; when that one is satisfied its owner
# looks for the next. So the work is proportional to what is woken, never to what is held.

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


# Causal barrier: the direct dependencies of the next message a node will publish on a topic.
#
# Delivering m makes m a direct dependency and everything m directly depended on an indirect one (Prakash, Raynal and
# Singhal). The set of (source, counter) is kept by counter, as a mask of sources: with many publishers of few messages
# each, testing and updating it costs a handful of word operations and one cache line instead of a probe per dependency.

Groups: TypeAlias = tuple[tuple[Counter, int], ...]
"""A barrier by counter: (counter, mask of sources), ascending."""


def grouped(barrier: Iterable[MessageId]) -> Groups:
    groups: dict[Counter, int] = {}
    for source, _, counter in barrier:
        groups[counter] = groups.get(counter, 0) | 1 << source
    return tuple(sorted(groups.items()))


class CausalBarrier:
    __slots__ = ("_direct",)

    def __init__(self) -> None:
        self._direct: dict[Counter, int] = {}

    def delivered(self, bit: int, counter: Counter, its_barrier: Groups) -> None:
        """A message of the source with that bit was delivered, which depended on `its_barrier`."""
        direct = self._direct
        for number, mask in its_barrier:
            mine = direct.get(number, 0)
            indirect = mine & mask
            if indirect:
                if indirect == mine:
                    del direct[number]
                else:
                    direct[number] = mine ^ indirect
        direct[counter] = direct.get(counter, 0) | bit

    def first_delivered(self, bit: int, its_barrier: int) -> None:
        """The same for a first message that depended on nothing but the first messages of these sources."""
        mine = self._direct.get(1, 0)
        self._direct[1] = mine ^ (mine & its_barrier) | bit

    def publish(self, bit: int, counter: Counter) -> Groups:
        """The barrier to stamp on an own message, which is from now on the only direct dependency."""
        stamped = tuple(sorted(self._direct.items()))
        self._direct = {counter: bit}
        return stamped


# Vector clocks over a fixed group: one counter per process, compared entry by entry.

Clock: TypeAlias = list[int]


def zero(size: int) -> Clock:
    return [0] * size


def merge(mine: Clock, other: Sequence[int]) -> None:
    """Raise every entry of `mine` to at least that of `other`."""
    for index, value in enumerate(other):
        if value > mine[index]:
            mine[index] = value


def happened_before(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether a is a cause of b: nowhere later, somewhere earlier."""
    return all(x <= y for x, y in zip(a, b, strict=True)) and any(x < y for x, y in zip(a, b, strict=True))


def concurrent(a: Sequence[int], b: Sequence[int]) -> bool:
    return not happened_before(a, b) and not happened_before(b, a) and list(a) != list(b)


def deliverable(stamp: Sequence[int], source: int, clock: Sequence[int]) -> bool:
    """Birman's rule: the source's next message, with nothing in its past that is missing here."""
    return all(value <= clock[k] if k != source else value == clock[k] + 1 for k, value in enumerate(stamp))
