"""A sweep for people: how far it is, with its stragglers, and what came out."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from cubecast.experiments.sweep.progress import Listener, Snapshot

MOST_RUNNING = 8
SECONDS_BETWEEN_LINES = 30.0


@contextmanager
def sweep_bar(console: Console, name: str, labels: Mapping[str, str]) -> Iterator[Listener]:
    """A bar, and under it the points that run now, longest first; a line now and then when that is no terminal."""
    if not console.is_terminal:
        yield SparseLines(console, name)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=console)
    task = bar.add_task(name, total=None)
    with Live(bar, console=console, transient=True) as live:

        def show(snapshot: Snapshot) -> None:
            bar.update(task, total=snapshot.total, completed=snapshot.finished)
            live.update(Group(bar, *running_lines(snapshot, labels)))

        yield show


class SparseLines:
    """A line whenever another tenth of the points is finished, or half a minute has passed: enough for a log file."""

    def __init__(self, console: Console, name: str) -> None:
        self._console = console
        self._name = name
        self._began: float | None = None
        self._told_at = 0.0
        self._told = 0

    def __call__(self, snapshot: Snapshot) -> None:
        if self._began is None:
            self._began = self._told_at = snapshot.at
        tenth = max(1, -(-snapshot.total // 10))
        enough = snapshot.finished >= self._told + tenth or snapshot.at - self._told_at >= SECONDS_BETWEEN_LINES
        if enough and snapshot.finished < snapshot.total:
            self._told, self._told_at = snapshot.finished, snapshot.at
            so_far = f"{snapshot.finished} of {snapshot.total} points, {snapshot.at - self._began:.0f} s so far"
            self._console.print(f"cubecast: sweep {self._name}: {so_far}", soft_wrap=True)


def running_lines(snapshot: Snapshot, labels: Mapping[str, str]) -> list[Text]:
    lines = [
        Text(f"  {snapshot.at - one.since:7.1f} s  {labels.get(one.point, one.point)}  ({one.worker})")
        for one in snapshot.running[:MOST_RUNNING]
    ]
    if snapshot.tasks_failed:
        lines.append(Text(f"  {snapshot.tasks_failed} lost attempts so far, repeated"))
    return lines


def print_sweep(console: Console, outcome: Mapping[str, Any]) -> None:
    """Means over the runs, then what failed and what took longest."""
    rows = outcome["means"]
    table = Table(title=f"{outcome['sweep']} · seed {outcome['seed']} · means over runs", title_justify="left")
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    console.print(table)
    for one in outcome["failed"]:
        console.print(f"failed: {one['point']}: {one['error']}", soft_wrap=True)
    for one in outcome["slowest"][:3]:
        console.print(f"slowest: {one['seconds']:.2f} s, {one['point']}", soft_wrap=True)
    console.print(
        f"{outcome['points']} points: {outcome['executed']} run now in {outcome['wall_seconds']:.1f} s, "
        f"{outcome['reused']} found finished, {outcome['errors']} failed, {outcome['retried']} needed another attempt",
        soft_wrap=True,
    )
    console.print(f"Results are in {outcome['results']}", soft_wrap=True)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return "" if value is None else str(value)
