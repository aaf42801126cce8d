"""Figure 5.9 and §5.6.4: p nodes publish at once, everybody else after p deliveries and a pause; 256 nodes.

The text does not say how the pause is drawn, and constant latencies hold back fewer messages than it prints. Pauses of
an exponential distribution and latencies with a deviation of 6.5 % come near all seven numbers: both are fitted.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.sim.config import SimConfig
from cubecast.sim.run import prepare

NODES = 256
FITTED = {"workload": "respond-poisson:{}:200", "propagation": "normal:100:6.5"}
PRINTED = {"workload": "respond:{}:350", "propagation": "constant:100"}


def run(point: Point) -> Figures:
    setting = dict(point["setting"])
    setting["workload"] = setting["workload"].format(point["first"])
    config = SimConfig(
        protocol="vcube-ps", nodes=NODES, publishers="100%", queued_control=False, seed=point["seed"], **setting
    )
    simulation = prepare(config)
    simulation.run()
    statistics = simulation.world.statistics
    held = list(statistics.holding.values())
    return {
        "dependencies": list(statistics.barrier),
        "receptions": len(statistics.reception),
        "held": sum(time > 0 for time in held),
        "held_10": sum(time >= 10 for time in held),
        "held_50": sum(time > 50 for time in held),
        "longest": max(held, default=0.0),
    }


def findings(runner: Runner, seeds: Sequence[int], setting: dict[str, str]) -> Iterator[Finding]:
    points = [{"first": first, "seed": seed, "setting": setting} for first in (1, 10) for seed in seeds]
    done = list(runner(run, points))
    one, ten = done[: len(seeds)], done[len(seeds) :]
    for name, runs, low, high in (
        ("PS-F59-lt5", one, 0, 4),
        ("PS-F59-one", one, 1, 1),
        ("PS-F59-p10-10", ten, 10, 10),
        ("PS-F59-p10-15", ten, 0, 14),
    ):
        yield Finding(claim(name), fmean(_share(figures, low, high) for figures in runs))
    for name, what in (("PS-564-10", "held_10"), ("PS-564-0", "held")):
        yield Finding(claim(name), fmean(100 - 100 * figures[what] / figures["receptions"] for figures in one))
    longest = fmean(figures["longest"] for figures in one)
    note = f"longest {longest:.0f} u.t. (paper 150); p = 10: {fmean(figures['held_50'] for figures in ten):.0f} (457)"
    yield Finding(claim("PS-564-50"), fmean(figures["held_50"] for figures in one), note=note)


def _share(figures: Figures, low: int, high: int) -> float:
    """Percent of the messages with so many direct dependencies."""
    sizes: list[int] = figures["dependencies"]
    return 100 * sum(low <= size <= high for size in sizes) / len(sizes)
