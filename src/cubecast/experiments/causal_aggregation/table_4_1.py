"""Table 4.1: packets sent without and with aggregation, and how many of the latter carry more than one message."""

from collections.abc import Iterator, Mapping
from typing import Any

from cubecast.experiments.causal_aggregation.results import Results, Run, percent, share
from cubecast.experiments.ledger import Claim, Comparison, Finding

# nodes: packets without aggregation, % fewer with it, % of those with more than one message
PAPER = {
    16: (240, 3.33, 3.02),
    32: (992, 7.36, 5.77),
    64: (4032, 12.87, 9.05),
    128: (16256, 15.36, 11.04),
    256: (65280, 24.54, 15.41),
    512: (261632, 26.79, 16.70),
    1024: (1047552, 28.79, 19.14),
}


def reduction(run: Run) -> float:
    return percent(run["none"]["packets"] - run["aggr"]["packets"], run["none"]["packets"])


def aggregated(run: Run) -> float:
    return 100 - share(run["aggr"]["messages_per_packet"], 1, 1)


def curves(readings: Mapping[str, Results]) -> dict[str, Any]:
    """The table drawn by size: the paper's values beside ours under each reading."""
    sizes = next(iter(readings.values())).sizes
    return {"nodes": sizes} | {
        f"{what} (%), {which}": values
        for what, measure, column in (("packets saved", reduction, 1), ("several messages", aggregated, 2))
        for which, values in (
            ("paper", [PAPER[nodes][column] if nodes in PAPER else None for nodes in sizes]),
            *((name, [results.mean(nodes, measure) for nodes in sizes]) for name, results in readings.items()),
        )
    }


def findings(results: Results) -> Iterator[Finding]:
    for nodes, (packets, fewer, more_than_one) in PAPER.items():
        if nodes not in results.sizes:
            continue

        def claim(name: str, quantity: str, value: float, unit: str, nodes: int = nodes) -> Claim:
            kind = Comparison.EXACT if name == "none" else Comparison.RELATIVE
            return Claim(f"CAB-T1-{nodes}-{name}", "Table 4.1", f"{quantity}, N = {nodes}", value, unit, kind, 0.15)

        without = results.mean(nodes, lambda run: run["none"]["packets"])
        yield Finding(claim("none", "packets without aggregation", packets, "packets"), without)
        note = f"± {results.deviation(nodes, reduction):.2f} from run to run"
        yield Finding(claim("red", "packets saved", fewer, "%"), results.mean(nodes, reduction), note=note)
        note = f"± {results.deviation(nodes, aggregated):.2f} from run to run"
        yield Finding(
            claim("agg", "packets of several messages", more_than_one, "%"), results.mean(nodes, aggregated), note=note
        )
