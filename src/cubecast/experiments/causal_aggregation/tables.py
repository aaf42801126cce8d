"""Tables 4.1 to 4.3: packets saved by aggregation, messages of a packet, bytes of a packet."""

from collections.abc import Iterator, Mapping
from typing import Any

from cubecast.experiments.causal_aggregation.results import Results, Run, percent, share
from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding

# Table 4.1: packets sent without and with aggregation, and how many of the latter carry more than one message

NODES_4_1 = (16, 32, 64, 128, 256, 512, 1024)


def reduction(run: Run) -> float:
    return percent(run["none"]["packets"] - run["aggr"]["packets"], run["none"]["packets"])


def aggregated(run: Run) -> float:
    return 100 - share(run["aggr"]["messages_per_packet"], 1, 1)


def savings_by_size(readings: Mapping[str, Results]) -> dict[str, Any]:
    """The table drawn by size: the paper's values beside ours under each reading."""
    sizes = next(iter(readings.values())).sizes
    return {"nodes": sizes} | {
        f"{what} (%), {which}": values
        for what, measure, name in (("packets saved", reduction, "red"), ("several messages", aggregated, "agg"))
        for which, values in (
            ("paper", [claim(f"CAB-T1-{nodes}-{name}").value if nodes in NODES_4_1 else None for nodes in sizes]),
            *((name, [results.mean(nodes, measure) for nodes in sizes]) for name, results in readings.items()),
        )
    }


def table_4_1(results: Results) -> Iterator[Finding]:
    for nodes in NODES_4_1:
        if nodes not in results.sizes:
            continue
        yield Finding(claim(f"CAB-T1-{nodes}-none"), results.mean(nodes, lambda run: run["none"]["packets"]))
        for name, measure in (("red", reduction), ("agg", aggregated)):
            note = f"± {results.deviation(nodes, measure):.2f} from run to run"
            yield Finding(claim(f"CAB-T1-{nodes}-{name}"), results.mean(nodes, measure), note=note)


# Table 4.2: how many messages a packet carries, 256 nodes

MIDDLE = 256
# messages of a packet, from and to
MESSAGES_OF_A_PACKET = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 15))


def table_4_2(results: Results) -> Iterator[Finding]:
    if MIDDLE not in results.sizes:
        return
    for first, last in MESSAGES_OF_A_PACKET:
        name = f"{first}" if first == last else f"{first}-{last}"
        ours = results.mean(MIDDLE, lambda run, a=first, b=last: share(run["aggr"]["messages_per_packet"], a, b))  # type: ignore[misc]
        yield Finding(claim(f"CAB-T2-{name}"), ours)


# Table 4.3: packets by their size in bytes, 256 nodes

BYTES = ("<100", "100-200", "200-300", "300-400", ">400")


def table_4_3(results: Results) -> Iterator[Finding]:
    if MIDDLE not in results.sizes:
        return
    for place, size in enumerate(BYTES):
        for mode, name in (("none", "none"), ("aggr", "agg")):
            ours = results.mean(MIDDLE, lambda run, m=mode, k=place: share(run[m]["packets_by_size"], k, k))  # type: ignore[misc]
            yield Finding(claim(f"CAB-T3-{size}-{name}"), ours)
