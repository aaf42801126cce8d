"""Causal barrier: the direct dependencies of the next message a node will publish on a topic.

Delivering m makes m a direct dependency and everything m directly depended on an indirect one (Prakash, Raynal and
Singhal). Kept in insertion order, so that iterating is deterministic.
"""

from collections.abc import Iterable
from typing import Generic, TypeVar

Dependency = TypeVar("Dependency")


class CausalBarrier(Generic[Dependency]):
    __slots__ = ("_direct",)

    def __init__(self) -> None:
        self._direct: dict[Dependency, None] = {}

    def __len__(self) -> int:
        return len(self._direct)

    def delivered(self, message: Dependency, its_barrier: Iterable[Dependency]) -> None:
        direct = self._direct
        for dependency in its_barrier:
            direct.pop(dependency, None)
        direct[message] = None

    def publish(self, message: Dependency) -> tuple[Dependency, ...]:
        """The barrier to stamp on an own message, which is from now on the only direct dependency."""
        stamped = tuple(self._direct)
        self._direct = {message: None}
        return stamped
