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


def overlays_table(facts: Mapping[str, Any]) -> Table:
    """Links of a process and the shape of its overlays, before and after."""
    links = list(facts["links"].items())
    title = f"{facts['users']:,} users · {facts['subscriptions']:,} subscriptions · StaN, {links[-1][0]} rounds"
    caption = (
        f"{facts['improved']:.1%} of the users lose more than 40 % of their links; "
        f"the graphs are those of {facts['overlays']['before']['topics']:,} topics"
    )
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for heading in ("", "before", "after"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("links of a user", f"{links[0][1]:,.1f}", f"{links[-1][1]:,.1f}")
    table.add_row("links, topic by topic", *[f"{facts['logical_links']:,.1f}"] * 2)
    before, after = facts["overlays"]["before"], facts["overlays"]["after"]
    for name, label in (("clustering", "clustering"), ("path", "path length"), ("diameter", "diameter, at least")):
        table.add_row(label, f"{before[name]:.3f}", f"{after[name]:.3f}")
    for name, label in (("weakly", "hang together"), ("strongly", "all reach all")):
        table.add_row(label, f"{before[name]:.1%}", f"{after[name]:.1%}")
    return table


def _correlation(correlation: Mapping[str, Any]) -> str:
    if correlation["mean"] is None:
        return "too few topics to correlate"
    low, high = correlation["interval"] or (correlation["mean"],) * 2
    mean = f"{correlation['mean']:.4f} (95 %: {low:.4f} to {high:.4f})"
    return f"mean correlation of topics {mean} over {correlation['pairs']:,} pairs"
