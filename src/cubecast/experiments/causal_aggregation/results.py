"""The figures of all runs of a chapter, by size."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

Run = Mapping[str, Any]


class Results:
    def __init__(self, runs: Iterable[Run]) -> None:
        self._by_size: defaultdict[int, list[Run]] = defaultdict(list)
        for run in runs:
            self._by_size[run["nodes"]].append(run)

    @property
    def sizes(self) -> list[int]:
        return sorted(self._by_size)

    def mean(self, nodes: int, measure: Callable[[Run], float]) -> float:
        return float(np.mean(self.each(nodes, measure)))

    def deviation(self, nodes: int, measure: Callable[[Run], float]) -> float:
        return float(np.std(self.each(nodes, measure)))

    def each(self, nodes: int, measure: Callable[[Run], float]) -> list[float]:
        return [measure(run) for run in self._by_size[nodes]]


def percent(part: float, whole: float) -> float:
    return 100.0 * part / whole


def higher(a: float, b: float) -> float:
    """How much a is above b, in percent of b."""
    return percent(a - b, b)


def share(counts: list[int], first: int, last: int) -> float:
    """Percent of a histogram that lies in first … last."""
    return percent(sum(counts[first : last + 1]), sum(counts))
