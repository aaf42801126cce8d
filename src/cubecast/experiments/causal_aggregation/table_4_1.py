"""Table 4.1: packets sent without and with aggregation, and how many of the latter carry more than one message."""

from collections.abc import Iterator, Mapping
from typing import Any

from cubecast.experiments.causal_aggregation.results import Results, Run, percent, share
from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding

SIZES = (16, 32, 64, 128, 256, 512, 1024)


def reduction(run: Run) -> float:
    return percent(run["none"]["packets"] - run["aggr"]["packets"], run["none"]["packets"])


def aggregated(run: Run) -> float:
    return 100 - share(run["aggr"]["messages_per_packet"], 1, 1)


def curves(readings: Mapping[str, Results]) -> dict[str, Any]:
    """The table drawn by size: the paper's values beside ours under each reading."""
    sizes = next(iter(readings.values())).sizes
    return {"nodes": sizes} | {
        f"{what} (%), {which}": values
        for what, measure, name in (("packets saved", reduction, "red"), ("several messages", aggregated, "agg"))
        for which, values in (
            ("paper", [claim(f"CAB-T1-{nodes}-{name}").value if nodes in SIZES else None for nodes in sizes]),
            *((name, [results.mean(nodes, measure) for nodes in sizes]) for name, results in readings.items()),
        )
    }


def findings(results: Results) -> Iterator[Finding]:
    for nodes in SIZES:
        if nodes not in results.sizes:
            continue
        yield Finding(claim(f"CAB-T1-{nodes}-none"), results.mean(nodes, lambda run: run["none"]["packets"]))
        for name, measure in (("red", reduction), ("agg", aggregated)):
            note = f"± {results.deviation(nodes, measure):.2f} from run to run"
            yield Finding(claim(f"CAB-T1-{nodes}-{name}"), results.mean(nodes, measure), note=note)
