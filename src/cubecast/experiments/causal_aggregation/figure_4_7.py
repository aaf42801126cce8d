"""Figure 4.7: the largest packet, in messages, each node sends, for two payload sizes, 1024 nodes."""

from collections.abc import Iterator

from cubecast.experiments.causal_aggregation.results import Results, share
from cubecast.experiments.ledger import Claim, Comparison, Finding

NODES = 1024
LARGE = Claim(
    "CAB-F47-50B",
    "Fig. 4.7",
    f"nodes whose largest packet holds 7-11 messages of 50 bytes, N = {NODES}",
    95.5,
    "%",
    Comparison.POINTS,
    10,
)
MOST = Claim(
    "CAB-F47-max",
    "Fig. 4.7",
    f"messages in the largest packet, 50 bytes each, N = {NODES}",
    14,
    "messages",
    Comparison.RELATIVE,
    0.25,
)


def findings(results: Results) -> Iterator[Finding]:
    if NODES not in results.sizes:
        return
    small = results.mean(NODES, lambda run: share(run["most_aggregated_small"], 8, 12))
    note = f"5-byte payload: {small:.1f} % hold 8-12 (paper 81.3)"
    yield Finding(LARGE, results.mean(NODES, lambda run: share(run["aggr"]["most_aggregated"], 7, 11)), note=note)
    yield Finding(MOST, results.mean(NODES, lambda run: run["aggr"]["most_messages"]))
