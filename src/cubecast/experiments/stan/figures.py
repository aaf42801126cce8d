"""Figures 3.7 to 3.15 of the thesis: links, what each process gains, what the overlays stay like; loss, churn, growth,
choices by processes that know all, and crossposts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cubecast.experiments.ledger import Evidence, Explanation, Finding, claim
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.experiments.stan.point import GRID_ROUNDS, TTL, average, setting, universe_of
from cubecast.experiments.stan.universes import Universe
from cubecast.protocol.families import find
from cubecast.sim.config import stream
from cubecast.sim.kernels.stan import ChangingOverlays, Overlays
from cubecast.sim.network import Network, parse_delay
from cubecast.sim.scenario import machines
from cubecast.sim.world import World
from cubecast.wire.codec import codec_of

# Figure 3.7: physical links of a hundred processes on a grid, round by round; in lock step, and as on PlanetLab.
#
# The deployment is replaced by the machines themselves in the simulator: rounds of 30 s that begin whenever a process
# does, delays as measured between PlanetLab's hosts, and a message lost now and then.

SETTING = setting("grid")
FIGURE_3_7_ROUND = 30_000.0
RUNS = 5
LOSS = 0.05
"""Of messages; the thesis calls it not negligible."""


def deployed(point: Point) -> Figures:
    """Links of a process at the start and after each round."""
    drawn, family, seed = universe_of("grid", point["seed"]), find("stan"), point["seed"]
    settled = {f"t{topic}": tuple(drawn.of(topic).tolist()) for topic in range(drawn.topics)}
    size = drawn.processes
    make = machines(family, seed, size, range(size), settled, {"period": str(FIGURE_3_7_ROUND), "ttl": str(TTL)})
    delay = parse_delay("planetlab", stream(seed, "delays"), size)
    world = World(range(size), make, Network(size, delay, processing=0.0, transmission=0.0), codec_of(family))
    lost = stream(seed, "loss")
    world.network.fate = lambda now, source, destination, packet: [] if lost.random() < LOSS else [0.0]
    world.start()
    links = [_links(world)]
    for number in range(1, GRID_ROUNDS + 1):
        world.run(number * FIGURE_3_7_ROUND)
        links.append(_links(world))
    return {"links": links}


def _links(world: World) -> float:
    alive: list[Any] = list(world.machines.values())
    return average(len(set().union(*(one.view for one in machine.overlays.values()))) for machine in alive)


def runs_of_figure_3_7(runner: Runner, seed: int) -> list[Figures]:
    return list(runner(deployed, [{"seed": seed + number} for number in range(RUNS)]))


def evolution(runs_of_figure_3_7: Sequence[Figures]) -> list[float]:
    return [average(values) for values in zip(*(run["links"] for run in runs_of_figure_3_7), strict=True)]


def beside_the_papers(links: Sequence[float]) -> dict[str, Sequence[float | None]]:
    """Round by round; the thesis prints the first and the last."""
    between: list[float | None] = [None] * (len(links) - 2)
    printed = [claim("ST-F37-initial").value, *between, claim("ST-F37").value]
    return {"links of a process on the grid, ours": links, "links of a process on the grid, paper": printed}


def findings_of_figure_3_7(runs_of_figure_3_7: Sequence[Figures], abroad: Sequence[Figures] = ()) -> Iterator[Finding]:
    links, logical = evolution(runs_of_figure_3_7), average(run["logical"] for run in runs_of_figure_3_7)
    note = f"{_by_round(links)}; logical links {logical:.1f} throughout"
    for name, ours in (("ST-F37-initial", links[0]), ("ST-F37", links[-1])):
        yield Finding(claim(name), ours, note=note)
    if abroad:
        links = evolution(abroad)
        yield Finding(claim("ST-F37-planetlab"), links[-1], note=f"{_by_round(links)}; {100 * LOSS:g} % lost")


def _by_round(links: Sequence[float]) -> str:
    return f"round by round {', '.join(f'{one:.1f}' for one in links)}"


# Figure 3.8: how much each process gains, by the links it had.


def findings_of_figure_3_8(wikipedia: Sequence[Figures], livejournal: Sequence[Figures]) -> Iterator[Finding]:
    improved, fewer = (100 * average(run["improved"] for run in runs) for runs in (wikipedia, livejournal))
    before, after = (average(run["large"][which] for run in wikipedia) for which in (0, 1))
    worse = max(run["worse_at_most"] for run in wikipedia)
    more = f"of those that get more links none had more than {worse}" if worse else "nobody gets more links"
    note = f"the 2 % with most links: {before:.0f} → {after:.0f} (text: 600 loses 400); {more}"
    yield Finding(claim("ST-F38"), improved, note=note)
    yield Finding(claim("ST-F38-L8"), fewer, holds=fewer < improved, note=f"L8 {fewer:.1f} %, W8 {improved:.1f} %")


# Figure 3.9: links before over links after, and how they grow with the topics of a process.


def findings_of_figure_3_9(runs: Mapping[str, Sequence[Figures]]) -> Iterator[Finding]:
    """By universe. The text has one factor for all Wikipedia universes."""
    for name, its in runs.items():
        ratio = average(run["ratio"] for run in its)
        before, after = (average(run["per_topic"][which] for run in its) for which in (0, 1))
        note = f"{name}: links per further topic {before:.2f} → {after:.2f}"
        if name.startswith("W"):
            yield Finding(claim(f"ST-F39-{name}"), ratio, note=note)
        else:
            yield Finding(claim(f"ST-F39-{name}"), ratio, holds=ratio > 1, note=note)


# Figure 3.10: the overlays stay what they were: clustering, path lengths, diameter, and whether they are connected.

MEASURES = ("clustering", "path", "diameter")
LONGER = 6
"""The thesis gives no TTL; ours is 4 elsewhere."""


def settings_of_figure_3_10(universe: str) -> list[dict[str, object]]:
    return [setting(universe, measure="fitness", repair=repair) for repair in (True, False)]


def with_longer_walks(universe: str) -> dict[str, object]:
    return setting(universe, measure="fitness", repair=False, ttl=LONGER)


def explanations(runs: Sequence[Sequence[Figures]]) -> dict[str, Explanation]:
    """From the runs of `settings` and of `with_longer_walks`."""
    repaired, _, longer = (
        average(run["final"]["diameter"] / run["initial"]["diameter"] for run in its) for its in runs
    )
    return {
        "ST-FIT-L8-diameter": Explanation(
            "The diameter depends on the TTL, which the thesis does not state, and on members that hardly anybody "
            "points to: it grows by less than the tolerance with longer walks, and with pins.",
            1.05,
            1.08,
            [
                Evidence(f"with TTL {LONGER}", longer, 0.95, 1.05),
                Evidence("with pins", repaired, 0.95, 1.05),
            ],
        )
    }


def findings_of_figure_3_10(
    universe: str, repaired: Sequence[Figures], printed: Sequence[Figures]
) -> Iterator[Finding]:
    """The figure's quantities under the printed rules; what they lose, and that pins bring it back."""
    for name in MEASURES:
        before, after = (average(run[when][name] for run in printed) for when in ("initial", "final"))
        pinned = average(run["final"][name] for run in repaired)
        yield Finding(
            claim(f"ST-FIT-{universe}-{name}"),
            after / before,
            note=f"{before:.3f} → {after:.3f}, with pins {pinned:.3f}",
        )
    weakly = 100 * min(run["final"]["weakly"] for run in printed)
    yield Finding(claim(f"ST-FIT-{universe}-weakly"), weakly)
    lost, kept = (100 * average(run["final"]["reachable"] for run in runs) for runs in (printed, repaired))
    unpointed = average(run["final"]["unpointed"] for run in printed)
    pins = average(run["final"]["pinned"] for run in repaired)
    note = f"as printed {lost:.1f} %, {unpointed:.0f} subscriptions are in no view; {pins:.0f} pins"
    yield Finding(claim(f"ST-FIT-{universe}-reachable"), kept, note=note)


# Figure 3.11: lost messages slow it down.

LOSSES = (0.0, 0.1, 0.15, 0.2)
FIGURE_3_11_ROUND = 9


def settings_of_figure_3_11(universe: str) -> list[dict[str, object]]:
    return [setting(universe, loss=loss) for loss in LOSSES]


def findings_of_figure_3_11(universe: str, runs: Mapping[float, Sequence[Figures]]) -> Iterator[Finding]:
    links = {loss: evolution(its) for loss, its in runs.items()}
    whole = links[0.0][0] - links[0.0][FIGURE_3_11_ROUND]
    shares = {loss: (curve[0] - curve[FIGURE_3_11_ROUND]) / whole for loss, curve in links.items()}
    yield Finding(
        claim("ST-LOSS"), shares[0.1], note=", ".join(f"{100 * loss:g} %: {one:.2f}" for loss, one in shares.items())
    )


# Figure 3.12: processes come and go as in the Overnet traces, at the printed rate, four and sixteen times as fast.

FACTORS = (1, 4, 16)
ROUNDS, CONVERGED = 60, 10
UP, DOWN = 145.0, 80.0
"""Minutes, of exponential stays: the trace itself is not to be had. A round is a minute of it."""


def run_of_figure_3_12(point: Point) -> Figures:
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


def runs_of_figure_3_12(runner: Runner, universe: str, seeds: range) -> dict[int, list[Figures]]:
    points = [
        {"universe": universe, "factor": factor, "seed": seed, "first_seed": seeds.start}
        for factor in FACTORS
        for seed in seeds
    ]
    figures = iter(list(runner(run_of_figure_3_12, points)))
    return {factor: [next(figures) for _ in seeds] for factor in FACTORS}


def findings_of_figure_3_12(done: Mapping[int, Sequence[Figures]]) -> Iterator[Finding]:
    for factor, its in done.items():
        follows = average(
            _correlation(run_of_figure_3_12["links"], run_of_figure_3_12["processes"]) for run_of_figure_3_12 in its
        )
        links = [one for run_of_figure_3_12 in its for one in run_of_figure_3_12["links"][CONVERGED:]]
        note = f"{min(links):.0f} to {max(links):.0f} links after round {CONVERGED}"
        yield Finding(claim(f"ST-CHURN-x{factor}"), follows, holds=follows > 0, note=note)
    fastest = done[FACTORS[-1]]
    isolated, empty = (
        sum(sum(run_of_figure_3_12[name]) for run_of_figure_3_12 in fastest) for name in ("isolated", "empty")
    )
    yield Finding(claim("ST-CHURN-isolated"), isolated, note=f"{empty} empty views in {len(fastest) * ROUNDS} rounds")


def _correlation(links: Sequence[float], processes: Sequence[int]) -> float:
    return float(np.corrcoef(links[CONVERGED:], processes[CONVERGED:])[0, 1])


# Figure 3.13: half of the processes are there, the others come in five waves; links are as if all had come at once.

WAVES, ROUNDS_BETWEEN, LAST = 5, 10, 70


def run_of_figure_3_13(point: Point) -> Figures:
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


def runs_of_figure_3_13(runner: Runner, universe: str, seeds: range) -> list[Figures]:
    return list(
        runner(run_of_figure_3_13, [{"universe": universe, "seed": seed, "first_seed": seeds.start} for seed in seeds])
    )


def findings_of_figure_3_13(universe: str, done: Sequence[Figures]) -> Iterator[Finding]:
    links = [average(values) for values in zip(*(one["links"] for one in done), strict=True)]
    scratch = average(one["scratch"] for one in done)
    note = f"{links[-1]:.1f} against {scratch:.1f}; at most {max(links[WAVES:]):.1f} on the way"
    yield Finding(claim("ST-GROWTH"), links[-1] / scratch, note=note)


# Figure 3.14: neighbours chosen by common interests, by processes that know all: few links, clustered overlays.


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


def run_of_figure_3_14(point: Point) -> Figures:
    drawn = universe_of(point["universe"], point["first_seed"])
    overlays = Overlays(drawn.first, drawn.members, seed=point["seed"], repair=False)
    choose_greedily(drawn, overlays)
    return {
        "links": float(overlays.physical_links().sum() / drawn.processes),
        "clustering": float(overlays.fitness()["clustering"]),
        "reachable": overlays.reachable(),
    }


def runs_of_figure_3_14(runner: Runner, universe: str, seed: int) -> list[Figures]:
    """One: nothing in it is drawn but the universe."""
    return list(runner(run_of_figure_3_14, [{"universe": universe, "seed": seed, "first_seed": seed}]))


def findings_of_figure_3_14(greedy: Sequence[Figures], stan: Sequence[Figures]) -> Iterator[Finding]:
    """`stan` are runs of Figure 3.10 with pins."""
    links, ours = (
        average(run_of_figure_3_14["links"] for run_of_figure_3_14 in greedy),
        average(run_of_figure_3_14["links"][-1] for run_of_figure_3_14 in stan),
    )
    note = f"{links:.1f} links, StaN {ours:.1f}"
    yield Finding(claim("ST-GREEDY-links"), links / ours, holds=links < ours, note=note)
    clustered, before, after = (
        average(run_of_figure_3_14["clustering"] for run_of_figure_3_14 in greedy),
        *(
            average(run_of_figure_3_14[when]["clustering"] for run_of_figure_3_14 in stan)
            for when in ("initial", "final")
        ),
    )
    whole = 100 * average(run_of_figure_3_14["reachable"] for run_of_figure_3_14 in greedy)
    note = f"{clustered:.2f}, StaN {before:.3f} → {after:.3f}; {whole:.0f} % of its overlays are whole"
    yield Finding(claim("ST-GREEDY-clustering"), clustered / after, holds=clustered > 1.5 * after, note=note)


# Figure 3.15: what CrosspostFlood saves, before StaN and after it, and what it costs in hops.


def settings_of_figure_3_15(universe: str) -> list[dict[str, object]]:
    return [setting(universe, measure="crossposts")]


def findings_of_figure_3_15(universe: str, runs: Sequence[Figures]) -> Iterator[Finding]:
    before, after = (100 * average(run[when]["saving"] for run in runs) for when in ("initial", "final"))
    hops, apart = (average(run["final"][name] for run in runs) for name in ("hops", "hops_apart"))
    floods = sum(run["final"]["floods"] for run in runs)
    yield Finding(claim("ST-XP"), after, note=f"before StaN {before:.1f} %; {floods:.0f} messages")
    yield Finding(claim("ST-XP-hops"), hops - apart, holds=hops <= apart * 1.01, note=f"{hops:.2f} against {apart:.2f}")
