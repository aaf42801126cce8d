"""Subscription workloads as tables for people."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

_DEGREES = {"subscribers_per_topic": "subscribers per topic", "subscriptions_per_user": "subscriptions per user"}


def degrees_table(facts: Mapping[str, Any]) -> Table:
    """Sizes, both degree distributions with their power laws, and the correlation of topics."""
    title = f"{facts['topics']:,} topics · {facts['users']:,} users · {facts['subscriptions']:,} subscriptions"
    table = Table(title=title, caption=_correlation(facts["correlation"]), title_justify="left", caption_justify="left")
    for heading in ("", "mean", "max", "exponent", "from", "distance"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, label in _DEGREES.items():
        degrees, law = facts[name], facts[name]["power_law"]
        exponent = f"{law['exponent']:.2f} ± {law['error']:.2f}"
        numbers = (f"{degrees['mean']:,.1f}", f"{degrees['max']:,}", exponent, f"{law['least']:,}")
        table.add_row(label, *numbers, f"{law['distance']:.3f}")
    return table


def _correlation(correlation: Mapping[str, Any]) -> str:
    if correlation["mean"] is None:
        return "too few topics to correlate"
    return f"mean correlation of topics {correlation['mean']:.4f} over {correlation['pairs']:,} pairs"
