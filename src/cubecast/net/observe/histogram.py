"""A histogram of times that costs a bisection and an addition per value, and never grows."""

from bisect import bisect_left
from collections.abc import Sequence

_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
BOUNDS: tuple[float, ...] = tuple(float(f"{step}e{power}") for power in range(-5, 2) for step in _STEPS)
"""Upper bounds of the buckets in seconds, 10 µs to 70 s; what is larger falls into a last one."""


class Histogram:
    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float, weight: int = 1) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += weight
        self.sum += seconds * weight

    def with_zeros(self, zeros: int) -> "Histogram":
        """The same, and so many values of nothing."""
        more = Histogram()
        more.counts, more.sum = [self.counts[0] + zeros, *self.counts[1:]], self.sum
        return more

    @property
    def count(self) -> int:
        return sum(self.counts)


def percentile(counts: Sequence[int], rank: float) -> float | None:
    """The value below which a share `rank` of the counted lies, as if a bucket's values lay evenly in it; what lies in
    the first one, mostly things that did not wait at all, counts as nothing."""
    total = sum(counts)
    if not total:
        return None
    wanted, passed = rank * total, 0
    for position, count in enumerate(counts):
        if count and passed + count >= wanted:
            if not position:
                return 0.0
            low = BOUNDS[position - 1]
            high = BOUNDS[position] if position < len(BOUNDS) else low
            return low + (high - low) * max(0.0, wanted - passed) / count
        passed += count
    return BOUNDS[-1]
