"""Metrics of traces as tables for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

DISTRIBUTIONS = (
    *("reception_latency", "delivery_latency", "holding_time", "completion_latency", "subscription_latency", "hops"),
    *("barrier_size", "vector_size", "vector_changed", "messages_per_packet", "bytes_per_packet"),
    *("queue_length", "transit_time", "node_queue_mean", "node_held_max", "node_packets_sent"),
)
PARTS = ("mean", "std", "ci99", "p50", "p90", "p99", "max")
OVER_RUNS = ("runs", "mean", "std", "ci99", "min", "max")
COUNTS = (
    *("published", "deliveries", "packets", "messages_sent", "bytes", "packets_per_publication"),
    *("duplicates", "false_positives", "relays", "lost_packets", "packets_sent_gini", "packets_sent_max_over_mean"),
)


def metric_tables(metrics: Mapping[str, Any]) -> Iterator[Table]:
    """One table per run, and one over runs if any setting has several."""
    for run in metrics["runs"]:
        yield run_table(run)
    several = shown_over_runs(metrics["over_runs"])
    if several:
        yield over_runs_table(several)


def shown_over_runs(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of settings with several runs, what is worth a line."""
    return [row for row in rows if row["runs"] > 1 and row["metric"] in (*DISTRIBUTIONS, *COUNTS)]


def run_table(run: Mapping[str, Any]) -> Table:
    table = Table(title=f"{run['run']} · {run['protocol']} · times in {run['clock_unit']}", title_justify="left")
    _columns(table, PARTS)
    for name in DISTRIBUTIONS:
        if name in run:
            table.add_row(name.replace("_", " "), *(_number(run[name][part]) for part in PARTS))
    table.add_section()
    for name in COUNTS:
        table.add_row(name.replace("_", " "), _number(run.get(name)))
    return table


def over_runs_table(rows: list[Mapping[str, Any]]) -> Table:
    table = Table(title="over runs of the same setting", title_justify="left")
    _columns(table, OVER_RUNS)
    setting = rows[0]["setting"]
    for row in rows:
        if row["setting"] != setting:
            table.add_section()
            setting = row["setting"]
        table.add_row(row["metric"].replace("_", " "), *(_number(row[part]) for part in OVER_RUNS))
    return table


def _columns(table: Table, headings: tuple[str, ...]) -> None:
    table.add_column("")
    for heading in headings:
        table.add_column("± 99 %" if heading == "ci99" else heading, justify="right")


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
