"""Figure 4.7: the largest packet, in messages, each node sends, for two payload sizes, 1024 nodes."""

from collections.abc import Iterator

from cubecast.experiments.causal_aggregation.results import Results, share
from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding

NODES = 1024


def findings(results: Results) -> Iterator[Finding]:
    if NODES not in results.sizes:
        return
    small = results.mean(NODES, lambda run: share(run["most_aggregated_small"], 8, 12))
    note = f"5-byte payload: {small:.1f} % hold 8-12 (paper 81.3)"
    yield Finding(
        claim("CAB-F47-50B"), results.mean(NODES, lambda run: share(run["aggr"]["most_aggregated"], 7, 11)), note=note
    )
    yield Finding(claim("CAB-F47-max"), results.mean(NODES, lambda run: run["aggr"]["most_messages"]))
