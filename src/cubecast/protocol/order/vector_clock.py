"""Vector clocks over a fixed group: one counter per process, compared entry by entry."""

from collections.abc import Sequence
from typing import TypeAlias

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
