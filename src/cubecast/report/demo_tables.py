"""What the demonstration shows."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

_PARTS = ("mean", "p50", "p99", "max")
_TIMES = ("reception_latency", "delivery_latency", "holding_time", "completion_latency", "subscription_latency")
_COUNTS = ("published", "deliveries", "packets", "bytes", "duplicates")


def demo_tables(result: Mapping[str, Any]) -> Iterator[Table]:
    yield _members(result)
    yield _metrics(result["metrics"])
    yield _verdicts(result)


def _members(result: Mapping[str, Any]) -> Table:
    title = f"{result['members']} live nodes, node {result['killed']} killed, node {result['joined']} joined"
    table = Table(title=title, title_justify="left")
    table.add_column("node")
    columns = ("questions", "answers", "delivered", "too_early", "gaps")
    for column in columns:
        heading = "answers before their question" if column == "too_early" else column
        table.add_column(heading, justify="right")
    for node, counted in result["counted"].items():
        table.add_row(node, *(f"{counted[column]:,}" for column in columns))
    return table


def _metrics(metrics: Mapping[str, Any]) -> Table:
    table = Table(title="What the trace says of it", title_justify="left")
    table.add_column("")
    for part in _PARTS:
        table.add_column(part, justify="right")
    for name in _TIMES:
        if name in metrics:
            parts = (f"{1000 * metrics[name][part]:,.2f}" for part in _PARTS)
            table.add_row(f"{name.replace('_', ' ')}, ms", *parts)
    table.add_section()
    for name in _COUNTS:
        table.add_row(name, f"{metrics[name]:,}")
    return table


def _verdicts(result: Mapping[str, Any]) -> Table:
    table = Table("trace", "reference checker", "verifier", "smallest witness", title="Verdicts", title_justify="left")
    for name, checked in result["checked"].items():
        witness = checked["witnesses"][0]["reason"] if checked["witnesses"] else ""
        table.add_row(name, checked["verdict"], result["verified"][name]["verdict"], witness)
    return table
