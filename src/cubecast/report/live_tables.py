"""What a live node says about itself, as tables."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table


def status_tables(status: Mapping[str, Any]) -> Iterator[Table]:
    yield _members(status)
    if status.get("overlay", {}).get("edges"):
        yield _overlay(status["overlay"])
    if status["topics"]:
        yield _topics(status)
    if status.get("streams"):
        yield _streams(status)


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


def _overlay(overlay: Mapping[str, Any]) -> Table:
    """What the node knows of who is connected to whom; the corners of a cube say it by their ids."""
    near: dict[int, list[str]] = {}
    for one, other, label in overlay["edges"]:
        near.setdefault(one, []).append(f"{other} ({label})" if label else str(other))
    table = Table(title=f"overlay: {overlay['shape']}", title_justify="left")
    for heading in ("node", "children" if overlay["shape"] == "tree" else "neighbours"):
        table.add_column(heading)
    for node, others in near.items():
        table.add_row(str(node), ", ".join(others))
    return table


def _streams(status: Mapping[str, Any]) -> Table:
    table = _table(
        f"streams: {status['streams_in_all']:,}",
        *("stream", "publisher", "messages", "parent", "depth", "children", "behind", "copies per message", "slow"),
    )
    for one in status["streams"]:
        parent = "–" if one["parent"] is None else str(one["parent"])
        numbers = (one["publisher"], one["messages"], parent, one["depth"], len(one["children"]), one["behind"])
        table.add_row(one["topic"], *map(str, numbers), f"{one['copies_per_message']:.2f}", str(len(one["slow"])))
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
