"""Figure 3.14: neighbours chosen by common interests, by processes that know all: few links, clustered overlays."""

from collections.abc import Iterator, Sequence

import numpy as np

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.experiments.stan.point import average, universe_of
from cubecast.experiments.stan.universes import Universe
from cubecast.sim.kernels.stan import Overlays


def choose_greedily(drawn: Universe, overlays: Overlays) -> None:
    """In every topic each member takes those that share most topics with it; of equal ones those that come first."""
    belongs = np.zeros((drawn.processes, drawn.topics), np.float32)
    for topic in range(drawn.topics):
        belongs[drawn.of(topic), topic] = 1
    common = belongs @ belongs.T
    np.fill_diagonal(common, -1)
    for topic in range(drawn.topics):
        first, members = int(drawn.first[topic]), drawn.of(topic)
        best = np.argsort(-common[np.ix_(members, members)], axis=1, kind="stable")
        for place in range(len(members)):
            size = int(overlays.world.size[first + place])
            overlays.set_view(first + place, (first + best[place, :size]).tolist())


def run(point: Point) -> Figures:
    drawn = universe_of(point["universe"], point["first_seed"])
    overlays = Overlays(drawn.first, drawn.members, seed=point["seed"], repair=False)
    choose_greedily(drawn, overlays)
    return {
        "links": float(overlays.physical_links().sum() / drawn.processes),
        "clustering": float(overlays.fitness()["clustering"]),
        "reachable": overlays.reachable(),
    }


def runs(runner: Runner, universe: str, seed: int) -> list[Figures]:
    """One: nothing in it is drawn but the universe."""
    return list(runner(run, [{"universe": universe, "seed": seed, "first_seed": seed}]))


def findings(greedy: Sequence[Figures], stan: Sequence[Figures]) -> Iterator[Finding]:
    """`stan` are runs of Figure 3.10 with pins."""
    links, ours = average(run["links"] for run in greedy), average(run["links"][-1] for run in stan)
    note = f"{links:.1f} links, StaN {ours:.1f}"
    yield Finding(claim("ST-GREEDY-links"), links / ours, holds=links < ours, note=note)
    clustered, before, after = (
        average(run["clustering"] for run in greedy),
        *(average(run[when]["clustering"] for run in stan) for when in ("initial", "final")),
    )
    whole = 100 * average(run["reachable"] for run in greedy)
    note = f"{clustered:.2f}, StaN {before:.3f} → {after:.3f}; {whole:.0f} % of its overlays are whole"
    yield Finding(claim("ST-GREEDY-clustering"), clustered / after, holds=clustered > 1.5 * after, note=note)
