"""One simulation of the chapter, and how often its results are averaged."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.sim.config import SimConfig
from cubecast.sim.run import prepare

# Upper ends of the groups of Table 5.1; the first group is exactly 0.
QUEUE_GROUPS = (0, 2, 4, 8, 16, 32, 4096, 8192)
SYSTEMS = ("vcube-ps", "srpt")


def run_point(point: Point) -> Figures:
    """The figures of one run, with the nodes grouped by the mean length of their output queue."""
    simulation = prepare(SimConfig(**point))
    figures = simulation.run()
    network = simulation.world.network
    groups = [0] * (len(QUEUE_GROUPS) + 1)
    for length, queued in zip(network.mean_queue_lengths(), network.queued, strict=True):
        # A leaf of the single tree queues nothing but its own publication: the paper counts it as taking no part.
        groups[bisect_left(QUEUE_GROUPS, length if queued > 1 else 0)] += 1
    return figures | {"queue_groups": groups}


@dataclass(frozen=True)
class Sample:
    """All runs of one setting on both systems, seed by seed."""

    runs: dict[str, list[Figures]]

    def mean(self, system: str, *path: str) -> float:
        return fmean(self.values(system, *path))

    def deviation(self, system: str, *path: str) -> float:
        values = self.values(system, *path)
        return stdev(values) if len(values) > 1 else 0.0

    def values(self, system: str, *path: str) -> list[float]:
        return [_at(figures, path) for figures in self.runs[system]]

    def ratio(self, *path: str) -> float:
        """The single tree's mean over VCube-PS'."""
        return self.mean("srpt", *path) / self.mean("vcube-ps", *path)


def sample(runner: Runner, seeds: Sequence[int], **setting: Any) -> Sample:
    points = [{"protocol": system, "seed": seed, **setting} for system in SYSTEMS for seed in seeds]
    figures = list(runner(run_point, points))
    return Sample({system: figures[k * len(seeds) : (k + 1) * len(seeds)] for k, system in enumerate(SYSTEMS)})


def _at(figures: Any, path: Sequence[str]) -> float:
    for key in path:
        figures = figures[key]
    return float(figures)
