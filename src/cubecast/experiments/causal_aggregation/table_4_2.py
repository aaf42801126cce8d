"""Table 4.2: how many messages a packet carries, 256 nodes."""

from collections.abc import Iterator

from cubecast.experiments.causal_aggregation.results import Results, share
from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding

NODES = 256
# messages of a packet, from and to
GROUPS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 15))


def findings(results: Results) -> Iterator[Finding]:
    if NODES not in results.sizes:
        return
    for first, last in GROUPS:
        name = f"{first}" if first == last else f"{first}-{last}"
        ours = results.mean(NODES, lambda run, a=first, b=last: share(run["aggr"]["messages_per_packet"], a, b))  # type: ignore[misc]
        yield Finding(claim(f"CAB-T2-{name}"), ours)
