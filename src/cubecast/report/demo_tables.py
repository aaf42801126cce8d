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


def demo_tables(result: Mapping[str, Any]) -> Iterator[Table]:
    yield _figures(result)
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


def _verdicts(result: Mapping[str, Any]) -> Table:
    table = Table("trace", "reference checker", "Spark", "smallest witness", title="Verdicts", title_justify="left")
    for name, checked in result["checked"].items():
        witness = checked["witnesses"][0]["reason"] if checked["witnesses"] else ""
        table.add_row(name, checked["verdict"], result["verified"][name], witness)
    return table
