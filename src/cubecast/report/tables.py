"""Figures and verdicts as tables for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

_DISTRIBUTIONS = {
    "reception_latency": "reception latency, u.t.",
    "delivery_latency": "delivery latency, u.t.",
    "holding_time": "holding time, u.t.",
    "barrier_size": "barrier size, entries",
    "queue_length": "output queue, packets",
}
_COUNTS = ("published", "packets", "messages_sent", "bytes", "deliveries", "duplicates", "false_positives", "refused")


def figures_table(figures: Mapping[str, Any]) -> Table:
    """What `cubecast sim` measured."""
    title = f"{figures['protocol']} · {figures['nodes']} nodes · seed {figures['seed']}"
    caption = f"{figures['events_per_second']:,.0f} packet events per second · digest {figures['digest']}"
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for heading in ("", "mean", "p50", "p99", "max"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, label in _DISTRIBUTIONS.items():
        table.add_row(label, *(f"{figures[name][part]:,.2f}" for part in ("mean", "p50", "p99", "max")))
    table.add_section()
    for name in _COUNTS:
        table.add_row(name.replace("_", " "), f"{figures[name]:,}")
    return table


def print_verdict(console: Console, report: Mapping[str, Any]) -> None:
    """What a checker found: property by property, then the smallest witnesses."""
    table = Table("property", "verdict", "violations")
    for name, one in report["properties"].items():
        said = f"{one['verdict']}, vacuous" if name in report.get("vacuous", ()) else one["verdict"]
        table.add_row(name, said, f"{one['violations']:,}")
    console.print(table)
    _print_list(console, "Measured, not promised", [_measured(*one) for one in report.get("measured", {}).items()])
    _print_list(console, "Not known because", report["unknown_because"])
    _print_list(console, "Smallest witnesses", [_witness(one) for one in report["witnesses"]])
    _print_list(console, "Partial", report.get("partial", ()))
    _print_list(console, "Refused", report.get("refused", ()))
    runs = f" in {report['runs']:,} runs" if report["runs"] > 1 else ""
    console.print(f"{report['verdict']}: {report['messages']:,} messages, {report['deliveries']:,} deliveries{runs}")


def _measured(name: str, one: Mapping[str, Any]) -> str:
    if not one["of"]:
        return f"{name}: nothing to measure it by"
    low, high = one["interval"]
    return f"{name}: {one['rate']:.4%} of {one['of']:,}, with 95 % confidence {low:.4%} to {high:.4%}"


def _witness(one: Mapping[str, Any]) -> str:
    where = f"node {one['node']}.{one['incarnation']}, row {one['seq']}"
    return f"{one['property']} in {one['run']}, {where}: {one['reason']}"


def _print_list(console: Console, title: str, lines: Sequence[str]) -> None:
    if lines:
        console.print(f"{title}:")
    for line in lines:
        console.print(f"  {line}", soft_wrap=True)


COMPARED = {
    "complete": "complete, %",
    "p50": "p50, ms",
    "p99": "p99, ms",
    "packets": "packets",
    "bytes": "bytes",
    "metadata": "metadata, bytes",
    "holding": "held, ms",
    "joined": "joined, ms",
    "missed": "missed, %",
    "P5": "FIFO broken",
    "P7": "causes late",
    "P9b": "total order",
}
"""What a comparison shows of each system, and as what: packets and bytes per delivery."""
_SHARES = ("complete", "missed")


def compared(row: Mapping[str, Any], name: str) -> float | str | None:
    """A figure of a comparison as it is shown."""
    value: float | None = row[name]
    if name == "P9b":
        return "yes" if value == 0 else "no"
    return value if value is None or name not in _SHARES else 100 * value


def print_comparison(console: Console, found: Mapping[str, Any]) -> None:
    """A table for each condition."""
    size = found["size"]
    for condition in dict.fromkeys(row["condition"] for row in found["rows"]):
        table = Table(title=condition, title_justify="left")
        table.add_column("system")
        for heading in COMPARED.values():
            table.add_column(heading, justify="right")
        for row in found["rows"]:
            if row["condition"] == condition:
                table.add_row(row["system"], *(_short(compared(row, name)) for name in COMPARED))
        console.print(table)
    console.print(
        f"{size['nodes']} processes, {size['publishers']} of them publish {size['messages']} messages of "
        f"{size['size']} bytes each within 4 s; a hop takes 5 to 15 ms. Packets, bytes and metadata are per delivery. "
        f"{found['runs']} runs, seed {found['seed']}.",
        soft_wrap=True,
    )


def _short(value: float | str | None) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"
