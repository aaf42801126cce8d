"""Figures 4 and 5: a quarter or half of the nodes publish once within 1,000 u.t.; their own trees against a fixed one.

A hop takes 10 to 20 u.t., and a node takes in one packet per unit of time. The root of the fixed tree does not publish:
with N = 8 that alone decides between 26 and 37 %. Subscriptions do not change here; the text lets up to 5 % of them
change every 100 u.t. to show that it does not matter.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from statistics import fmean
from typing import Any

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.sim.config import SimConfig
from cubecast.sim.run import prepare

SYSTEMS = ("vcube-pb", "srpt")
SHARES = ("25%", "50%")
CLOSE = 0.1
NEARLY_ALL = 0.95
LARGE = 2048
"""Where Figure 5 ends; in smaller networks messages are too far apart to depend on each other."""


def run(point: Point) -> Figures:
    """The first seed from the given one on whose root does not publish, in both systems."""
    for seed in count(point["seed"] * 1000):
        trees = _prepare("srpt", seed, point)
        if trees.world.machines[0].root_of("t") not in trees.publishers:
            return {"srpt": _figures(trees), "vcube-pb": _figures(_prepare("vcube-pb", seed, point))}
    raise AssertionError("count() does not end")


def _prepare(system: str, seed: int, point: Point) -> Any:
    config = SimConfig(
        protocol=system,
        nodes=point["nodes"],
        publishers=point["publishers"],
        propagation="uniform:10:20",
        processing=0.0,
        transmission=0.0,
        reception=1.0,
        seed=seed,
    )
    return prepare(config)


def _figures(simulation: Any) -> Figures:
    figures = simulation.run()
    sizes = simulation.world.statistics.barrier
    return {
        "delivery": figures["delivery_latency"]["mean"],
        "dependent": sum(size > 0 for size in sizes) / len(sizes),
        "held": len(simulation.world.statistics.holding) / len(simulation.world.statistics.reception),
    }


class Curves:
    """Means over the runs, by system, share of publishers and size."""

    def __init__(self, runner: Runner, sizes: Sequence[int], seeds: Sequence[int]) -> None:
        self.sizes = sizes
        keys = [(share, nodes) for share in SHARES for nodes in sizes]
        points = [{"publishers": share, "nodes": nodes, "seed": seed} for share, nodes in keys for seed in seeds]
        done = list(runner(run, points))
        self._runs = {key: done[k * len(seeds) : (k + 1) * len(seeds)] for k, key in enumerate(keys)}

    def mean(self, system: str, share: str, nodes: int, what: str) -> float:
        return fmean(figures[system][what] for figures in self._runs[share, nodes])

    def lower(self, nodes: int) -> float:
        """By how many percent the delivery latency is below that of the fixed tree."""
        own, fixed = (self.mean(system, SHARES[0], nodes, "delivery") for system in SYSTEMS)
        return 100 * (1 - own / fixed)

    def series(self, what: str) -> dict[str, Any]:
        return {"nodes": list(self.sizes)} | {
            f"{what}, {system} {share}": [self.mean(system, share, nodes, what) for nodes in self.sizes]
            for system in SYSTEMS
            for share in SHARES
        }


def findings(curves: Curves) -> Iterator[Finding]:
    for nodes in (8, LARGE):
        if nodes in curves.sizes:
            own, fixed = (curves.mean(system, SHARES[0], nodes, "delivery") for system in SYSTEMS)
            yield Finding(claim(f"PB-F4-{nodes}"), curves.lower(nodes), note=f"{own:.1f} against {fixed:.1f} u.t.")
    largest = curves.sizes[-1]
    if largest < LARGE:
        return
    apart = max(
        abs(curves.mean("vcube-pb", share, nodes, "dependent") - curves.mean("srpt", share, nodes, "dependent"))
        for share in SHARES
        for nodes in curves.sizes
    )
    nearly = min(curves.mean(system, SHARES[1], largest, "dependent") for system in SYSTEMS)
    held = {system: curves.mean(system, SHARES[1], largest, "held") for system in SYSTEMS}
    note = (
        f"messages with a dependency: at most {100 * apart:.1f} points apart; of deliveries "
        f"{100 * held['vcube-pb']:.1f} and {100 * held['srpt']:.1f} % waited for one, N = {largest}, 50 % publish"
    )
    yield Finding(claim("PB-F5"), nearly, apart <= CLOSE and nearly >= NEARLY_ALL, note)
