"""What a live node says about itself, as tables."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table


def status_tables(status: Mapping[str, Any]) -> Iterator[Table]:
    yield _members(status)
    if status["topics"]:
        yield _topics(status)


def _table(title: str, *columns: str) -> Table:
    """First column of names, the others of numbers."""
    table = Table(title=title, title_justify="left")
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left")
    return table


def _members(status: Mapping[str, Any]) -> Table:
    title = f"node {status['node']} of cluster {status['cluster']!r} · clients: {status['clients']}"
    table = _table(title, "member", "incarnation", "address", "state", "bytes queued for it")
    for one in status["members"]:
        state = "alive" if one["alive"] else "gone"
        table.add_row(str(one["node"]), str(one["incarnation"]), one["address"], state, f"{one['queued']:,}")
    return table


def _topics(status: Mapping[str, Any]) -> Table:
    shown, in_all = len(status["topics"]), status["topics_in_all"]
    title = f"topics: {in_all:,}" if shown == in_all else f"{shown:,} of {in_all:,} topics, the busy ones first"
    table = _table(title, "topic", "members", "published here", "not yet stable", "window", "kept", "lag")
    for name, one in status["topics"].items():
        window = f"{one['window']['used']}/{one['window']['size']}"
        lag = sum(publisher["lag"] for publisher in one["publishers"])
        counts = (one["published"], one["unstable"] + one["waiting"])
        table.add_row(
            name, str(len(one["members"])), *(f"{n:,}" for n in counts), window, f"{one['kept']:,}", f"{lag:,}"
        )
    return table
