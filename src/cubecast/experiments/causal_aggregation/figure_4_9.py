"""Figures 4.8 and 4.9: one tree per publisher against the single tree of node 0."""

from collections.abc import Iterator

from cubecast.experiments.causal_aggregation.results import Results, Run, percent
from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding


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


def findings(results: Results) -> Iterator[Finding]:
    sizes = [nodes for nodes in results.sizes if nodes >= 32]
    if sizes:
        both = [fewer(results, nodes) for nodes in sizes]
        note = f"delayed messages at least {min(delayed for _, delayed in both):.0f} % fewer (paper 84)"
        yield Finding(claim("CAB-F49"), min(aggregated for aggregated, _ in both), note=note)
