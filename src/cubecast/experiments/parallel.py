"""Runs the points of an experiment: one process per core, or whatever takes a function and a list of points."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeAlias

Point: TypeAlias = Mapping[str, Any]
Figures: TypeAlias = dict[str, Any]
PointFunction: TypeAlias = Callable[[Point], Figures]
Runner: TypeAlias = Callable[[PointFunction, Sequence[Point]], Iterator[Figures]]
"""(function, points) → their figures, in the order of the points."""


def in_processes(function: PointFunction, points: Sequence[Point]) -> Iterator[Figures]:
    with ProcessPoolExecutor(min(len(points), os.cpu_count() or 1)) as pool:
        yield from pool.map(function, points)


def here(function: PointFunction, points: Sequence[Point]) -> Iterator[Figures]:
    return map(function, points)
