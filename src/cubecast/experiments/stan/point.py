"""One run of §3.3: a universe, its overlays, ten rounds; and what to make of several."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.experiments.stan.universes import SHAPES, Universe, grid, matched
from cubecast.sim.kernels.stan import Overlays
from cubecast.sim.kernels.stan_kernel import flood, make_flood

# §3.3.7: messages tagged with three topics that many share, sent once per neighbour or once per topic.

MESSAGES = 10
"""Per topic."""
SAVED = 0.1


def triplets(drawn: Universe) -> list[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Every topic with the two that correlate most with it, and who subscribes to all three; none where nobody does."""
    belongs = np.zeros((drawn.topics, drawn.processes), np.float32)
    for topic in range(drawn.topics):
        belongs[topic, drawn.of(topic)] = 1
    correlation = np.asarray(np.corrcoef(belongs))
    np.fill_diagonal(correlation, -2)
    found = []
    for topic in range(drawn.topics):
        three = np.array([topic, *np.argsort(-correlation[topic], kind="stable")[:2]], np.int64)
        common = np.flatnonzero(belongs[three].all(axis=0)).astype(np.int32)
        if len(common):
            found.append((three, common))
    return found


def savings(drawn: Universe, overlays: Overlays, rng: Generator) -> dict[str, float]:
    """Share of the relaying processes that save more than a tenth of their messages, and hops until a delivery."""
    together, apart = make_flood(drawn.processes, 3), make_flood(drawn.processes, 1)
    floods = 0
    for three, common in triplets(drawn):
        for source in rng.choice(common, MESSAGES).tolist():
            floods += 1
            flood(overlays.world, three, source, together)
            for topic in three:
                flood(overlays.world, np.array([topic]), source, apart)
    relays = apart.sent > 0
    saved = 1 - together.sent[relays] / apart.sent[relays]
    return {
        "floods": floods,
        "saving": float((saved > SAVED).mean()),
        "hops": float(together.sums[1] / together.sums[0]),
        "hops_apart": float(apart.sums[1] / apart.sums[0]),
    }


# One run.

ROUNDS = 10
GRID_ROUNDS = 8
TTL = 4
"""The thesis says "of the order of the diameter" and gives no number."""
MUCH = 0.4
"""An improvement worth mentioning, §3.3.4."""


@cache
def universe_of(name: str, seed: int) -> Universe:
    return grid(np.random.default_rng(seed)) if name == "grid" else matched(seed, SHAPES[name])


def setting(universe: str, **changed: Any) -> dict[str, Any]:
    rounds = GRID_ROUNDS if universe == "grid" else ROUNDS
    return {"universe": universe, "rounds": rounds, "ttl": TTL, "loss": 0.0, "repair": True, "measure": ""} | changed


def run(point: Point) -> Figures:
    """Grids differ from run to run; of the others there is one, as in the thesis, with other views in every run."""
    drawn = universe_of(point["universe"], point["seed"] if point["universe"] == "grid" else point["first_seed"])
    overlays = Overlays(drawn.first, drawn.members, seed=point["seed"], ttl=point["ttl"], repair=point["repair"])

    def per_process(links: NDArray[np.int64]) -> float:
        return float(links.sum() / drawn.processes)

    before = overlays.physical_links()
    found: Figures = {"initial": _measured(point["measure"], drawn, overlays, point["seed"])}
    links = [per_process(before)]
    for _ in range(point["rounds"]):
        overlays.round(point["loss"])
        links.append(per_process(overlays.physical_links()))
    if point["repair"]:
        overlays.mend()
    found["final"] = _measured(point["measure"], drawn, overlays, point["seed"])
    return found | {"links": links, "logical": per_process(overlays.logical_links())} | _improvement(before, overlays)


def _improvement(before: NDArray[np.int64], overlays: Overlays) -> Figures:
    there = before > 0
    after = overlays.physical_links()[there]
    before = before[there]
    topics = overlays.subscriptions()[there]
    gained = 1 - after / before
    large = before >= np.quantile(before, 0.98)
    return {
        "improved": float((gained > MUCH).mean()),
        "worse": float((gained < 0).mean()),
        "worse_at_most": int(before[gained < 0].max()) if (gained < 0).any() else 0,
        "ratio": float((before / after).mean()),
        "large": (float(before[large].mean()), float(after[large].mean())),
        "per_topic": (_slope(topics, before), _slope(topics, after)),
    }


def _slope(topics: NDArray[np.int64], links: NDArray[np.int64]) -> float:
    """Links per further topic, by least squares."""
    return float(np.polyfit(topics, links, 1)[0])


def _measured(what: str, drawn: Universe, overlays: Overlays, seed: int) -> dict[str, float]:
    if what == "fitness":
        connected = {"reachable": overlays.reachable(), "weakly": overlays.weakly_connected()}
        return (
            {name: float(value) for name, value in overlays.fitness().items()}
            | connected
            | {
                "unpointed": overlays.unpointed(),
                "pinned": overlays.pinned(),
            }
        )
    return savings(drawn, overlays, np.random.default_rng([seed, 1])) if what == "crossposts" else {}


def run_settings(runner: Runner, settings: Sequence[dict[str, Any]], seeds: range) -> list[list[Figures]]:
    """The runs of each setting."""
    points = [one | {"seed": seed, "first_seed": seeds.start} for one in settings for seed in seeds]
    figures = iter(list(runner(run, points)))
    return [[next(figures) for _ in seeds] for _ in settings]


def average(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
