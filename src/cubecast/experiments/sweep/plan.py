"""What is left to run, cut into Spark tasks: long points alone and first, short ones together."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from cubecast.errors import BadInput
from cubecast.experiments.sweep.grid import Parameters, Point, Sweep
from cubecast.experiments.sweep.kinds import PointKind, find_kind

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
