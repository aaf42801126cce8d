"""Table 4.3: packets by their size in bytes, 256 nodes."""

from collections.abc import Iterator

from cubecast.experiments.causal_aggregation.results import Results, share
from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding

NODES = 256
SIZES = ("<100", "100-200", "200-300", "300-400", ">400")


def findings(results: Results) -> Iterator[Finding]:
    if NODES not in results.sizes:
        return
    for place, size in enumerate(SIZES):
        for mode, name in (("none", "none"), ("aggr", "agg")):
            ours = results.mean(NODES, lambda run, m=mode, k=place: share(run[m]["packets_by_size"], k, k))  # type: ignore[misc]
            yield Finding(claim(f"CAB-T3-{size}-{name}"), ours)
