"""What a point of a sweep runs: one simulation, or an experiment's own function; the points of a sweep."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from cubecast.errors import BadInput
from cubecast.experiments.sweep.grid import Parameters, Point, Sweep

Figures: TypeAlias = dict[str, Any]

KINDS: dict[str, str] = {"sim": "cubecast.experiments.sweep.simulation:SIMULATION"}
"""Short names; any other kind is written module:attribute."""


def _as_given(parameters: Parameters) -> Parameters:
    return parameters


@dataclass(frozen=True)
class PointKind:
    """`run` gets the point's parameters and its `seed`, and returns figures, nested dictionaries allowed."""

    run: Callable[[Parameters], Figures]
    check: Callable[[Parameters], Parameters] = _as_given
    """Raises BadInput before anything runs; returns the complete parameters, defaults included, for the results."""
    trace: Callable[[Parameters, Path], Figures] | None = None
    """As `run`, and writes the trace to a new directory."""
    cost: Callable[[Parameters], float] | None = None
    """Rough seconds of a run: short ones share a Spark task, long ones go first."""
    headline: tuple[str, ...] = ()
    """Columns of the results that a summary shows."""


@cache
def find_kind(name: str) -> PointKind:
    """Once per process: a Python worker keeps what it imported and compiled from one task to the next."""
    module_name, colon, attribute = KINDS.get(name, name).partition(":")
    if not colon:
        raise BadInput(f"there is no kind of point {name!r}; there are {', '.join(KINDS)}, or write module:function")
    try:
        found = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"the kind of point {name!r} cannot be loaded: {error}") from None
    if isinstance(found, PointKind):
        return found
    if not callable(found):
        raise BadInput(f"the kind of point {name!r} is neither a function nor a PointKind")
    return PointKind(found)


# What is left to run, cut into Spark tasks: long points alone and first, short ones together.

Batch: TypeAlias = tuple[Point, ...]

SHORT_SECONDS = 0.3
"""A task costs about 15 ms besides its work, so points below this share one …"""
BATCH_SECONDS = 1.0
"""… that lasts about so long."""
TASKS_PER_CORE = 8
"""As many tasks as this remain, so that the cores finish together."""


def checked_points(sweep: Sweep) -> tuple[list[Point], dict[str, Parameters]]:
    """All points, and each combination's complete parameters; BadInput before anything runs."""
    kind = find_kind(sweep.point)
    if sweep.keep_traces and kind.trace is None:
        raise BadInput(f"points of the kind {sweep.point!r} write no traces to keep")
    points = sweep.expand()
    return points, {point.combination: kind.check(point.parameters) for point in points if point.run == 0}


def batches(points: Iterable[Point], kind: PointKind, cores: int) -> list[Batch]:
    """Heaviest first; without a guess of the cost every point is a task."""
    waiting = list(points)
    if kind.cost is None:
        return [(point,) for point in waiting]
    costs = _costs(waiting, kind.cost)
    waiting.sort(key=lambda point: -costs[point.id])
    fair_share = sum(costs.values()) / (cores * TASKS_PER_CORE)
    alone = [(point,) for point in waiting if costs[point.id] >= SHORT_SECONDS]
    return alone + _packed(waiting[len(alone) :], costs, min(BATCH_SECONDS, fair_share))


def _costs(points: Sequence[Point], cost: Callable[[Parameters], float]) -> dict[str, float]:
    return {point.id: cost(point.parameters) for point in points}


def _packed(points: Sequence[Point], costs: dict[str, float], most: float) -> list[Batch]:
    """In order; a batch is closed before it costs more than `most`."""
    found: list[Batch] = []
    batch: list[Point] = []
    total = 0.0
    for point in points:
        if batch and total + costs[point.id] > most:
            found.append(tuple(batch))
            batch, total = [], 0.0
        batch.append(point)
        total += costs[point.id]
    if batch:
        found.append(tuple(batch))
    return found
