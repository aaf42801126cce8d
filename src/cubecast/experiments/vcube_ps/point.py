"""One simulation of the chapter, and how often its results are averaged."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np

from cubecast.experiments.parallel import Figures, Point, PointFunction, Runner
from cubecast.sim.config import SimConfig
from cubecast.sim.kernels.tree_flood import Messages, TreeFlood
from cubecast.sim.run import prepare

# Upper ends of the groups of Table 5.1; the first group is exactly 0.
QUEUE_GROUPS = (0, 2, 4, 8, 16, 32, 4096, 8192)
SYSTEMS = ("vcube-ps", "srpt")


WINDOW = 1000.0
"""In which the publications of Figure 5.8 and Table 5.1 fall."""


def run_point(point: Point) -> Figures:
    """The figures of one run, with the nodes grouped by the mean length of their output queue."""
    simulation = prepare(SimConfig(**point))
    figures = simulation.run()
    network = simulation.world.network
    return figures | {"queue_groups": _groups(network.mean_queue_lengths(), network.queued)}


def run_kernel(point: Point) -> Figures:
    """The same where a share of all nodes publishes once, everybody subscribes and acknowledgements do not wait."""
    nodes, per_link = point["nodes"], point.get("per_link", False)
    rng = np.random.default_rng([point["seed"], nodes])
    publishers = np.sort(rng.permutation(nodes)[: round(nodes * point["share"])])
    times, root = rng.uniform(0, WINDOW, len(publishers)), rng.integers(nodes)
    roots = publishers if point["protocol"] == "vcube-ps" else np.full(len(publishers), root)
    flood = TreeFlood(nodes, per_link=per_link)
    run = flood.simulate(Messages(times, publishers, roots, np.zeros_like(publishers)))
    groups = _groups(run.mean_queue_lengths, run.queued.tolist())
    return {"reception_latency": {"mean": run.latency}, "queue_groups": groups}


def _groups(lengths: Iterable[float], queued: Iterable[int]) -> list[int]:
    groups = [0] * (len(QUEUE_GROUPS) + 1)
    for length, packets in zip(lengths, queued, strict=True):
        # A leaf of the single tree queues nothing but its own publication: the paper counts it as taking no part.
        groups[bisect_left(QUEUE_GROUPS, length if packets > 1 else 0)] += 1
    return groups


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
    return _sample(run_point, runner, seeds, setting)


def busy(runner: Runner, seeds: Sequence[int], nodes: int, *, queued_control: bool) -> Sample:
    """Everybody publishes once; where acknowledgements do not wait either, the kernel does it."""
    if queued_control:
        return sample(runner, seeds, nodes=nodes, publishers="100%", window=WINDOW)
    return _sample(run_kernel, runner, seeds, {"nodes": nodes, "share": 1.0})


def _sample(function: PointFunction, runner: Runner, seeds: Sequence[int], setting: Mapping[str, Any]) -> Sample:
    points = [{"protocol": system, "seed": seed, **setting} for system in SYSTEMS for seed in seeds]
    figures = list(runner(function, points))
    return Sample({system: figures[k * len(seeds) : (k + 1) * len(seeds)] for k, system in enumerate(SYSTEMS)})


def _at(figures: Any, path: Sequence[str]) -> float:
    for key in path:
        figures = figures[key]
    return float(figures)
