"""Figures 4.4, 4.5 and 4.8 as curves: latencies by size. The claims about them are in `figure_4_4` and `figure_4_9`."""

from typing import Any

from cubecast.experiments.causal_aggregation.figure_4_4 import latency
from cubecast.experiments.causal_aggregation.figure_4_9 import aggregations
from cubecast.experiments.causal_aggregation.results import Results


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
