"""Figures 4.3 to 4.9: dependencies, latencies, buffers, packets, and one tree against many; their claims and curves.

Of Figure 4.4 the text says that from 8 to 1024 nodes the average reception latency is 2.1 times higher with aggregation
and 2.2 times without, "maximum increase" 3.9 and 4.1. A path of the cube is 2.92 times as long at 1024 nodes as at 8,
so 2.1 and 2.2 cannot be the increase at 1024 nodes; they are the mean of the increases of the sizes 16 … 1024, and 3.9
and 4.1 the one at 1024.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from cubecast.experiments.causal_aggregation.results import Results, Run, higher, percent, share
from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding

# Figure 4.3: how many dependencies a message has, 256 nodes

MIDDLE = 256
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
