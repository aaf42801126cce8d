"""Figure 3.13: half of the processes are there, the others come in five waves; links are as if all had come at once."""

from collections.abc import Iterator, Sequence

import numpy as np

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.experiments.stan.point import average, universe_of
from cubecast.sim.kernels.stan import ChangingOverlays, Overlays

WAVES, ROUNDS_BETWEEN, LAST = 5, 10, 70


def run(point: Point) -> Figures:
    drawn = universe_of(point["universe"], point["first_seed"])
    rng = np.random.default_rng([point["seed"], 2])
    order = rng.permutation(drawn.processes) / drawn.processes
    grown = ChangingOverlays(drawn.first, drawn.members, order < 0.5, seed=point["seed"])
    scratch = Overlays(drawn.first, drawn.members, seed=point["seed"])
    links = []
    for number in range(LAST):
        wave, early = divmod(number, ROUNDS_BETWEEN)
        if 1 <= wave <= WAVES and not early:
            grown.come(order < 0.5 + 0.5 * wave / WAVES)
        grown.round()
        scratch.round()
        now = grown.physical_links()
        links.append(float(now.sum() / (now > 0).sum()))
    return {"links": links, "scratch": float(scratch.physical_links().sum() / drawn.processes)}


def runs(runner: Runner, universe: str, seeds: range) -> list[Figures]:
    return list(runner(run, [{"universe": universe, "seed": seed, "first_seed": seeds.start} for seed in seeds]))


def findings(universe: str, done: Sequence[Figures]) -> Iterator[Finding]:
    links = [average(values) for values in zip(*(one["links"] for one in done), strict=True)]
    scratch = average(one["scratch"] for one in done)
    note = f"{links[-1]:.1f} against {scratch:.1f}; at most {max(links[WAVES:]):.1f} on the way"
    yield Finding(claim("ST-GROWTH"), links[-1] / scratch, note=note)
