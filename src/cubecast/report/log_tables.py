"""What a log holds, as a table for people."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table


def print_log(console: Console, report: Mapping[str, Any]) -> None:
    table = Table("topic", title=report["path"], title_justify="left")
    for heading in ("first", "last", "messages", "bytes", "from", "to", "damaged"):
        table.add_column(heading, justify="right")
    for one in report["topics"]:
        numbers = [f"{one[name]:,}" for name in ("first", "last", "messages", "bytes")]
        table.add_row(one["topic"], *numbers, _time(one["since"]), _time(one["until"]), str(len(one["damage"]) or ""))
    console.print(table)


def _time(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
