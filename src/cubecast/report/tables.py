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
