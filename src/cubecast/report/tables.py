"""Figures and verdicts as tables for people."""

from collections.abc import Mapping
from typing import Any

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
