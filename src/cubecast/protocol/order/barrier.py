"""Causal barrier: the direct dependencies of the next message a node will publish on a topic.

Delivering m makes m a direct dependency and everything m directly depended on an indirect one (Prakash, Raynal and
Singhal). A set, because both steps and the test whether a barrier is satisfied are then set operations, which cost
nanoseconds per entry; whoever needs an order sorts.
"""

from typing import Generic, TypeVar

Dependency = TypeVar("Dependency")


class CausalBarrier(Generic[Dependency]):
    __slots__ = ("_direct",)

    def __init__(self) -> None:
        self._direct: set[Dependency] = set()

    def __len__(self) -> int:
        return len(self._direct)

    def delivered(self, message: Dependency, its_barrier: frozenset[Dependency]) -> None:
        self._direct -= its_barrier
        self._direct.add(message)

    def publish(self, message: Dependency) -> frozenset[Dependency]:
        """The barrier to stamp on an own message, which is from now on the only direct dependency."""
        stamped = frozenset(self._direct)
        self._direct = {message}
        return stamped
