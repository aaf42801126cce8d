"""The whole chapter: its tables and figures, which points to run, and the ledger they make."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from cubecast.experiments.causal_aggregation.point import (
    MEAN_PROPAGATION,
    PRINTED_DEVIATION,
    Reading,
    positive_normal,
    run_point,
)
from cubecast.experiments.ledger import Finding, claim
from cubecast.experiments.parallel import Runner
from cubecast.sim.kernels.causal_broadcast import CausalKernel

# The figures of all runs of a chapter, by size.

Run = Mapping[str, Any]


class Results:
    def __init__(self, runs: Iterable[Run]) -> None:
        self._by_size: defaultdict[int, list[Run]] = defaultdict(list)
        for run in runs:
            self._by_size[run["nodes"]].append(run)

    @property
    def sizes(self) -> list[int]:
        return sorted(self._by_size)

    def mean(self, nodes: int, measure: Callable[[Run], float]) -> float:
        return float(np.mean(self.each(nodes, measure)))

    def deviation(self, nodes: int, measure: Callable[[Run], float]) -> float:
        return float(np.std(self.each(nodes, measure)))

    def each(self, nodes: int, measure: Callable[[Run], float]) -> list[float]:
        return [measure(run) for run in self._by_size[nodes]]


def percent(part: float, whole: float) -> float:
    return 100.0 * part / whole


def higher(a: float, b: float) -> float:
    """How much a is above b, in percent of b."""
    return percent(a - b, b)


def share(counts: list[int], first: int, last: int) -> float:
    """Percent of a histogram that lies in first … last."""
    return percent(sum(counts[first : last + 1]), sum(counts))


# Tables 4.1 to 4.3: packets saved by aggregation, messages of a packet, bytes of a packet.

# Table 4.1: packets sent without and with aggregation, and how many of the latter carry more than one message

NODES_4_1 = (16, 32, 64, 128, 256, 512, 1024)


def reduction(run: Run) -> float:
    return percent(run["none"]["packets"] - run["aggr"]["packets"], run["none"]["packets"])


def aggregated(run: Run) -> float:
    return 100 - share(run["aggr"]["messages_per_packet"], 1, 1)


def savings_by_size(readings: Mapping[str, Results]) -> dict[str, Any]:
    """The table drawn by size: the paper's values beside ours under each reading."""
    sizes = next(iter(readings.values())).sizes
    return {"nodes": sizes} | {
        f"{what} (%), {which}": values
        for what, measure, name in (("packets saved", reduction, "red"), ("several messages", aggregated, "agg"))
        for which, values in (
            ("paper", [claim(f"CAB-T1-{nodes}-{name}").value if nodes in NODES_4_1 else None for nodes in sizes]),
            *((name, [results.mean(nodes, measure) for nodes in sizes]) for name, results in readings.items()),
        )
    }


def table_4_1(results: Results) -> Iterator[Finding]:
    for nodes in NODES_4_1:
        if nodes not in results.sizes:
            continue
        yield Finding(claim(f"CAB-T1-{nodes}-none"), results.mean(nodes, lambda run: run["none"]["packets"]))
        for name, measure in (("red", reduction), ("agg", aggregated)):
            note = f"± {results.deviation(nodes, measure):.2f} from run to run"
            yield Finding(claim(f"CAB-T1-{nodes}-{name}"), results.mean(nodes, measure), note=note)


# Table 4.2: how many messages a packet carries, 256 nodes

MIDDLE = 256
# messages of a packet, from and to
MESSAGES_OF_A_PACKET = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 15))


def table_4_2(results: Results) -> Iterator[Finding]:
    if MIDDLE not in results.sizes:
        return
    for first, last in MESSAGES_OF_A_PACKET:
        name = f"{first}" if first == last else f"{first}-{last}"
        ours = results.mean(MIDDLE, lambda run, a=first, b=last: share(run["aggr"]["messages_per_packet"], a, b))  # type: ignore[misc]
        yield Finding(claim(f"CAB-T2-{name}"), ours)


# Table 4.3: packets by their size in bytes, 256 nodes

BYTES = ("<100", "100-200", "200-300", "300-400", ">400")


def table_4_3(results: Results) -> Iterator[Finding]:
    if MIDDLE not in results.sizes:
        return
    for place, size in enumerate(BYTES):
        for mode, name in (("none", "none"), ("aggr", "agg")):
            ours = results.mean(MIDDLE, lambda run, m=mode, k=place: share(run[m]["packets_by_size"], k, k))  # type: ignore[misc]
            yield Finding(claim(f"CAB-T3-{size}-{name}"), ours)


# Figures 4.3 to 4.9: dependencies, latencies, buffers, packets, and one tree against many; their claims and curves.
#
# Of Figure 4.4 the text says that from 8 to 1024 nodes the average reception latency is 2.1 times higher with
# aggregation and 2.2 times without, "maximum increase" 3.9 and 4.1. A path of the cube is 2.92 times as long at 1024
# nodes as at 8, so 2.1 and 2.2 cannot be the increase at 1024 nodes; they are the mean of the increases of the sizes 16
# … 1024, and 3.9 and 4.1 the one at 1024.

# Figure 4.3: how many dependencies a message has, 256 nodes

# dependencies of a message, from and to
DEPENDENCIES = {"none": (0, 0), "1-4": (1, 4), "5-9": (5, 9), "gt12": (13, MIDDLE)}


def figure_4_3(results: Results) -> Iterator[Finding]:
    if MIDDLE not in results.sizes:
        return
    for name, (first, last) in DEPENDENCIES.items():
        ours = results.mean(MIDDLE, lambda run, a=first, b=last: share(run["dependencies"], a, b))  # type: ignore[misc]
        yield Finding(claim(f"CAB-F43-{name}"), ours)
    yield Finding(claim("CAB-F43-max"), results.mean(MIDDLE, lambda run: len(run["dependencies"]) - 1))


# Figure 4.4: average reception and delivery latency, with and without aggregation, by size


def latency(results: Results, nodes: int, mode: str, what: str) -> float:
    return results.mean(nodes, lambda run: run[mode][what])


def change(results: Results, nodes: int, what: str) -> float:
    """With aggregation over without, in percent."""
    return higher(latency(results, nodes, "aggr", what), latency(results, nodes, "none", what))


def growth(results: Results, mode: str) -> tuple[float, float]:
    """Mean over the sizes above 8, and the largest, of the reception latency over that of 8 nodes."""
    increases = [latency(results, n, mode, "reception") for n in results.sizes if n > 8]
    ratios = np.array(increases) / latency(results, 8, mode, "reception")
    return float(ratios.mean()), float(ratios.max())


def figure_4_4(results: Results) -> Iterator[Finding]:
    sizes = results.sizes
    if 8 in sizes and 1024 in sizes:
        with_, without = growth(results, "aggr"), growth(results, "none")
        note = f"without {without[0]:.2f} (paper 2.2); largest {with_[1]:.2f} and {without[1]:.2f} (paper 3.9 and 4.1)"
        yield Finding(claim("CAB-F44-growth"), with_[0], note=note)
    if 256 in sizes:
        yield Finding(claim("CAB-F44-256"), change(results, 256, "reception"))
    if 1024 in sizes:
        yield Finding(claim("CAB-F44-1024-rec"), change(results, 1024, "reception"))
        yield Finding(claim("CAB-F44-1024-del"), change(results, 1024, "delivery"))
    small = [n for n in sizes if n <= 512]
    if small:
        yield Finding(claim("CAB-F44-512-del"), max(abs(change(results, n, "delivery")) for n in small))
    if 1024 in sizes and 16 in sizes:
        shorter = [-change(results, n, "holding") for n in sizes if n >= 16]
        note = "from 16 nodes on: " + ", ".join(f"{value:.0f}" for value in shorter) + " (paper 5 … 53)"
        holds = min(shorter) > 0 and shorter == sorted(shorter)
        yield Finding(claim("CAB-F44-hold"), shorter[-1], holds, note)


# Figure 4.6: how many messages a node buffers at most, 1024 nodes

LARGEST = 1024
FACTOR = 4


def figure_4_6(results: Results) -> Iterator[Finding]:
    if LARGEST not in results.sizes:
        return
    few, many, median = (
        {mode: results.mean(LARGEST, lambda run, m=mode, w=what: run[m][w]) for mode in ("none", "aggr")}  # type: ignore[misc]
        for what in ("nodes_buffering_at_most_50", "nodes_buffering_over_250", "median_buffer")
    )
    yield Finding(claim("CAB-F46-50"), few["aggr"], note=f"without {few['none']:.0f} (paper under 256)")
    note = f"without {many['none']:.0f} (paper 212); median {median['aggr']:.0f} with, {median['none']:.0f} without"
    yield Finding(claim("CAB-F46-250"), many["aggr"], many["none"] > 0 and many["none"] >= FACTOR * many["aggr"], note)


# Figure 4.7: the largest packet, in messages, each node sends, for two payload sizes, 1024 nodes


def figure_4_7(results: Results) -> Iterator[Finding]:
    if LARGEST not in results.sizes:
        return
    small = results.mean(LARGEST, lambda run: share(run["most_aggregated_small"], 8, 12))
    note = f"5-byte payload: {small:.1f} % hold 8-12 (paper 81.3)"
    yield Finding(
        claim("CAB-F47-50B"), results.mean(LARGEST, lambda run: share(run["aggr"]["most_aggregated"], 7, 11)), note=note
    )
    yield Finding(claim("CAB-F47-max"), results.mean(LARGEST, lambda run: run["aggr"]["most_messages"]))


# Figures 4.8 and 4.9: one tree per publisher against the single tree of node 0


def aggregations(run: Run, mode: str) -> int:
    """Messages that joined another in its packet."""
    return sum((count - 1) * packets for count, packets in enumerate(run[mode]["messages_per_packet"]) if count > 1)


def fewer(results: Results, nodes: int) -> tuple[float, float]:
    """By how many percent the single tree has fewer aggregations, and fewer delayed messages."""
    single = results.mean(nodes, lambda run: aggregations(run, "single_aggr"))
    multiple = results.mean(nodes, lambda run: aggregations(run, "aggr"))
    delayed = results.mean(nodes, lambda run: run["single_aggr"]["held"])
    delayed_multiple = results.mean(nodes, lambda run: run["aggr"]["held"])
    return 100 - percent(single, multiple), 100 - percent(delayed, delayed_multiple)


def figure_4_9(results: Results) -> Iterator[Finding]:
    sizes = [nodes for nodes in results.sizes if nodes >= 32]
    if sizes:
        both = [fewer(results, nodes) for nodes in sizes]
        note = f"delayed messages at least {min(delayed for _, delayed in both):.0f} % fewer (paper 84)"
        yield Finding(claim("CAB-F49"), min(aggregated for aggregated, _ in both), note=note)


# Figures 4.4, 4.5 and 4.8 as curves: latencies by size. The claims about them are in `figure_4_4` and `figure_4_9`


def latencies(results: Results) -> dict[str, Any]:
    """Figure 4.4: averages over all messages and nodes."""
    return {"nodes": results.sizes} | {
        f"{what}, {mode}": [latency(results, nodes, mode, what) for nodes in results.sizes]
        for what in ("reception", "delivery", "holding")
        for mode in ("none", "aggr")
    }


def latencies_of_pairs(results: Results) -> dict[str, Any]:
    """Figure 4.5: only messages that travelled two to a packet, against the same ones without aggregation."""
    sizes = [nodes for nodes in results.sizes if all(results.each(nodes, lambda run: run["pairs"]))]
    return {"nodes": sizes} | {
        f"{what}, {mode}": [results.mean(nodes, lambda run, k=f"pair_{what}_{mode}": run[k]) for nodes in sizes]  # type: ignore[misc]
        for what in ("reception", "delivery")
        for mode in ("none", "aggr")
    }


def one_tree_or_many(results: Results) -> dict[str, Any]:
    """Figures 4.8 and 4.9: reception latency, aggregations and delayed messages."""
    curves: dict[str, Any] = {"nodes": results.sizes}
    for name, none, aggr in (("multiple", "none", "aggr"), ("single", "single_none", "single_aggr")):
        curves[f"reception, {name}"] = [latency(results, nodes, none, "reception") for nodes in results.sizes]
        curves[f"aggregations, {name}"] = [
            results.mean(nodes, lambda run, mode=aggr: aggregations(run, mode))  # type: ignore[misc]
            for nodes in results.sizes
        ]
        curves[f"delayed, {name}"] = [latency(results, nodes, aggr, "held") for nodes in results.sizes]
    return curves


# Figure 3.1: causal information per message, compressed vector clocks against causal barriers.
#
# The text gives neither the rate nor the number of messages. One hundred messages of as many random publishers, one per
# mean propagation time, give both printed averages at once. (The text also says that a message had at most 31 indirect
# dependencies; with fewer than 6 direct ones on average that is not compatible with an average of 47 entries.)

NODES = 1024
MESSAGES = 100
MEAN_INTERVAL = MEAN_PROPAGATION


def run_rate_point(point: Mapping[str, Any]) -> dict[str, Any]:
    """`nodes` and `seed` in; what messages carry out."""
    nodes = int(point["nodes"])
    rng = np.random.default_rng([int(point["seed"]), nodes])
    times = np.full(nodes, np.inf)
    count = min(MESSAGES, nodes)
    times[rng.permutation(nodes)[:count]] = rng.exponential(MEAN_INTERVAL, count).cumsum()
    run = CausalKernel(nodes, aggregate=False).simulate(times, positive_normal(PRINTED_DEVIATION, (nodes, nodes), rng))
    assert run.complete()
    entries, direct = run.entries[run.published], run.direct_dependencies()[run.published]
    return {
        "nodes": nodes,
        "entries": float(entries.mean()),
        "barrier": float(direct.mean()),
        "most_indirect": int((entries - 1 - direct).max()),
    }


def findings(results: Results) -> Iterator[Finding]:
    if NODES in results.sizes:
        note = f"most indirect dependencies {results.mean(NODES, lambda run: run['most_indirect']):.0f} (paper 31)"
        yield Finding(claim("CAB-F31-vc"), results.mean(NODES, lambda run: run["entries"]), note=note)
        yield Finding(claim("CAB-F31-cb"), results.mean(NODES, lambda run: run["barrier"]))


# The whole chapter: which points to run, and the ledger they make.

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
QUICK_SIZES = SIZES[:5]
PARTS = (
    *(table_4_1, table_4_2, table_4_3),
    *(figure_4_3, figure_4_4, figure_4_6, figure_4_7, figure_4_9),
)


Runs: TypeAlias = int | Callable[[int], int]
"""How many of each point: a number, or a function of the size."""


def balanced(runs: int) -> Callable[[int], int]:
    """So many of the largest size, and up to ten times as many of the smaller ones, which vary more and cost less."""
    return lambda nodes: runs * max(1, min(10, SIZES[-1] // nodes))


def points(runs: Runs, seed: int, sizes: Iterable[int], **more: Any) -> list[dict[str, Any]]:
    """Largest first, so that the cores finish together."""
    return [
        {"nodes": nodes, "seed": seed + run, **more}
        for nodes in sorted(sizes, reverse=True)
        for run in range(runs if isinstance(runs, int) else runs(nodes))
    ]


def run_chapter(reading: Reading, runs: Runs, seed: int, runner: Runner, sizes: Sequence[int] = SIZES) -> Results:
    """All runs of chapter 4 under one reading."""
    return Results(runner(run_point, points(runs, seed, sizes, reading=reading.name)))


def run_rates(runs: Runs, seed: int, runner: Runner, sizes: Sequence[int] = SIZES) -> Results:
    """The runs of Figure 3.1, which belongs to no reading."""
    return Results(runner(run_rate_point, points(runs, seed, sizes)))


def all_findings(rates: Results, results: Results) -> list[Finding]:
    """Every claim that the sizes at hand allow to judge, in the chapter's order."""
    return [*findings(rates), *chain.from_iterable(part(results) for part in PARTS)]
