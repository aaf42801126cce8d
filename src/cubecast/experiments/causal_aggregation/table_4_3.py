"""Table 4.3: packets by their size in bytes, 256 nodes."""

from collections.abc import Iterator

from cubecast.experiments.causal_aggregation.results import Results, share
from cubecast.experiments.ledger import Claim, Comparison, Finding

NODES = 256
# size: % of packets without aggregation, with it
PAPER = {
    "<100": (63.67, 52.66),
    "100-200": (30.30, 31.28),
    "200-300": (6.03, 7.62),
    "300-400": (0.00, 3.91),
    ">400": (0.00, 4.54),
}


def findings(results: Results) -> Iterator[Finding]:
    if NODES not in results.sizes:
        return
    for place, (size, values) in enumerate(PAPER.items()):
        for mode, value in zip(("none", "aggr"), values, strict=True):
            name = f"CAB-T3-{size}-{'agg' if mode == 'aggr' else mode}"
            quantity = f"packets of {size} bytes {'with' if mode == 'aggr' else 'without'} aggregation, N = {NODES}"
            ours = results.mean(NODES, lambda run, m=mode, k=place: share(run[m]["packets_by_size"], k, k))  # type: ignore[misc]
            yield Finding(Claim(name, "Table 4.3", quantity, value, "%", Comparison.POINTS, 4), ours)
