"""Figure 4.6: how many messages a node buffers at most, 1024 nodes."""

from collections.abc import Iterator

from cubecast.experiments.causal_aggregation.results import Results
from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding

NODES = 1024
FACTOR = 4


def findings(results: Results) -> Iterator[Finding]:
    if NODES not in results.sizes:
        return
    few, many, median = (
        {mode: results.mean(NODES, lambda run, m=mode, w=what: run[m][w]) for mode in ("none", "aggr")}  # type: ignore[misc]
        for what in ("nodes_buffering_at_most_50", "nodes_buffering_over_250", "median_buffer")
    )
    yield Finding(claim("CAB-F46-50"), few["aggr"], note=f"without {few['none']:.0f} (paper under 256)")
    note = f"without {many['none']:.0f} (paper 212); median {median['aggr']:.0f} with, {median['none']:.0f} without"
    yield Finding(claim("CAB-F46-250"), many["aggr"], many["none"] > 0 and many["none"] >= FACTOR * many["aggr"], note)
