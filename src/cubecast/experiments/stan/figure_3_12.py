"""Figure 3.12: processes come and go as in the Overnet traces, at the printed rate, four and sixteen times as fast."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.experiments.stan.point import average, universe_of
from cubecast.sim.kernels.stan import ChangingOverlays

FACTORS = (1, 4, 16)
ROUNDS, CONVERGED = 60, 10
UP, DOWN = 145.0, 80.0
"""Minutes, of exponential stays: the trace itself is not to be had. A round is a minute of it."""


def run(point: Point) -> Figures:
    drawn = universe_of(point["universe"], point["first_seed"])
    rng = np.random.default_rng([point["seed"], 3])
    there = rng.random(drawn.processes) < UP / (UP + DOWN)
    overlays = ChangingOverlays(drawn.first, drawn.members, there, seed=point["seed"])
    leaves, returns = (1 - np.exp(-point["factor"] / stay) for stay in (UP, DOWN))
    found: Figures = {"processes": [], "links": [], "logical": [], "empty": [], "isolated": []}
    for _ in range(ROUNDS):
        change = rng.random(drawn.processes) < np.where(there, leaves, returns)
        overlays.go(there & change)
        overlays.come(~there & change)
        there = there ^ change
        found["empty"].append(overlays.empty_views())
        found["isolated"].append(overlays.isolated())
        overlays.round()
        here = max(1, int(there.sum()))
        found["processes"].append(here)
        found["links"].append(float(overlays.physical_links().sum() / here))
        found["logical"].append(float(overlays.logical_links().sum() / here))
    return found


def runs(runner: Runner, universe: str, seeds: range) -> dict[int, list[Figures]]:
    points = [
        {"universe": universe, "factor": factor, "seed": seed, "first_seed": seeds.start}
        for factor in FACTORS
        for seed in seeds
    ]
    figures = iter(list(runner(run, points)))
    return {factor: [next(figures) for _ in seeds] for factor in FACTORS}


def findings(done: Mapping[int, Sequence[Figures]]) -> Iterator[Finding]:
    for factor, its in done.items():
        follows = average(_correlation(run["links"], run["processes"]) for run in its)
        links = [one for run in its for one in run["links"][CONVERGED:]]
        note = f"{min(links):.0f} to {max(links):.0f} links after round {CONVERGED}"
        yield Finding(claim(f"ST-CHURN-x{factor}"), follows, holds=follows > 0, note=note)
    fastest = done[FACTORS[-1]]
    isolated, empty = (sum(sum(run[name]) for run in fastest) for name in ("isolated", "empty"))
    yield Finding(claim("ST-CHURN-isolated"), isolated, note=f"{empty} empty views in {len(fastest) * ROUNDS} rounds")


def _correlation(links: Sequence[float], processes: Sequence[int]) -> float:
    return float(np.corrcoef(links[CONVERGED:], processes[CONVERGED:])[0, 1])
