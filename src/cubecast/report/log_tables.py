"""What a log holds, as a table for people."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

DAY = len("2026-01-31")


def print_log(console: Console, report: Mapping[str, Any]) -> None:
    table = Table(title=report["path"], title_justify="left")
    table.add_column("topic", overflow="fold")
    for heading in ("first", "last", "messages", "bytes", "from", "to"):
        table.add_column(heading, justify="right", no_wrap=True)
    is_damaged = any(one["damage"] for one in report["topics"])
    if is_damaged:
        table.add_column("damaged", justify="right", no_wrap=True)
    for one in report["topics"]:
        numbers = [f"{one[name]:,}" for name in ("first", "last", "messages", "bytes")]
        damage = [str(len(one["damage"]) or "")] if is_damaged else []
        table.add_row(one["topic"], *numbers, *_times(one["since"], one["until"]), *damage)
    console.print(table)


def _times(since: float | None, until: float | None) -> tuple[str, str]:
    """The day is said once where it is the same: a table with two of them is too wide for most terminals."""
    first, last = _time(since), _time(until)
    return first, last[DAY + 1 :] if first[:DAY] == last[:DAY] else last


def _time(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
