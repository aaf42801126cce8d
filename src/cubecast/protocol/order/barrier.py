"""Causal barrier: the direct dependencies of the next message a node will publish on a topic.

Delivering m makes m a direct dependency and everything m directly depended on an indirect one (Prakash, Raynal and
Singhal). The set of (source, counter) is kept by counter, as a mask of sources: with many publishers of few messages
each, testing and updating it costs a handful of word operations and one cache line instead of a probe per dependency.
"""

from collections.abc import Iterable
from typing import TypeAlias

from cubecast.ids import Counter, MessageId

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
