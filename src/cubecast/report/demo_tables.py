"""What the demonstration shows."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.table import Table

_ROWS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "publications": lambda f: f"{f['published']:,}",
    "deliveries": lambda f: f"{f['deliveries']:,}",
    "packets": lambda f: f"{f['packets']:,}",
    "reception latency, mean u.t.": lambda f: f"{f['reception_latency']['mean']:,.1f}",
    "delivery latency, p99 u.t.": lambda f: f"{f['delivery_latency']['p99']:,.1f}",
    "direct dependencies, mean": lambda f: f"{f['barrier_size']['mean']:,.2f}",
}
_MEASURED = ("reception_latency", "delivery_latency", "holding_time", "hops", "bytes_per_packet", "node_queue_mean")
_SHARED_OUT = {
    "packets_per_publication": "packets per publication",
    "packets_sent_max_over_mean": "packets sent, busiest node over the mean",
}


def demo_tables(result: Mapping[str, Any]) -> Iterator[Table]:
    yield _figures(result)
    yield _measured(result)
    yield _verdicts(result)


def _figures(result: Mapping[str, Any]) -> Table:
    table = Table(title=f"The conversation, seed {result['seed']}", title_justify="left")
    table.add_column("")
    systems = list(result["figures"])
    for system in systems:
        table.add_column(system, justify="right")
    for label, cell in _ROWS.items():
        table.add_row(label, *(cell(result["figures"][system]) for system in systems))
    return table


def _measured(result: Mapping[str, Any]) -> Table:
    table = Table(title="What Spark reads from the traces, mean (99th percentile)", title_justify="left")
    table.add_column("")
    runs = result["measured"]["runs"]
    for run in runs:
        table.add_column(run["protocol"], justify="right")
    for name in _MEASURED:
        table.add_row(name.replace("_", " "), *(f"{run[name]['mean']:,.2f} ({run[name]['p99']:,.0f})" for run in runs))
    for name, label in _SHARED_OUT.items():
        table.add_row(label, *(f"{run[name]:,.2f}" for run in runs))
    return table


def _verdicts(result: Mapping[str, Any]) -> Table:
    table = Table("trace", "reference checker", "Spark", "smallest witness", title="Verdicts", title_justify="left")
    for name, checked in result["checked"].items():
        witness = checked["witnesses"][0]["reason"] if checked["witnesses"] else ""
        table.add_row(name, checked["verdict"], result["verified"][name], witness)
    return table
