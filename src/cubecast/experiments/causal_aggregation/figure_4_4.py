"""Figure 4.4: average reception and delivery latency, with and without aggregation, by size.

The text says that from 8 to 1024 nodes the average reception latency is 2.1 times higher with aggregation and 2.2 times
without, "maximum increase" 3.9 and 4.1. A path of the cube is 2.92 times as long at 1024 nodes as at 8, so 2.1 and 2.2
cannot be the increase at 1024 nodes; they are the mean of the increases of the sizes 16 … 1024, and 3.9 and 4.1 the one
at 1024.
"""

from collections.abc import Iterator

import numpy as np

from cubecast.experiments.causal_aggregation.results import Results, higher
from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding


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


def findings(results: Results) -> Iterator[Finding]:
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
