"""Table 4.2: how many messages a packet carries, 256 nodes."""

from collections.abc import Iterator

from cubecast.experiments.causal_aggregation.results import Results, share
from cubecast.experiments.ledger import Claim, Comparison, Finding

NODES = 256
# (from, to) messages: % of all packets
PAPER = {(1, 1): 84.59, (2, 2): 9.16, (3, 3): 3.12, (4, 4): 1.26, (5, 5): 0.66, (6, 15): 1.2}


def findings(results: Results) -> Iterator[Finding]:
    if NODES not in results.sizes:
        return
    for (first, last), value in PAPER.items():
        name = f"{first}" if first == last else f"{first}-{last}"
        ours = results.mean(NODES, lambda run, a=first, b=last: share(run["aggr"]["messages_per_packet"], a, b))  # type: ignore[misc]
        quantity = f"packets with {name} messages, N = {NODES}"
        yield Finding(Claim(f"CAB-T2-{name}", "Table 4.2", quantity, value, "%", Comparison.RELATIVE, 0.20), ours)
