"""What people see, by rich, which nodes and clients that print plain lines do without: output, errors, and what a long
command is at.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from cubecast.escaping import visible_lines

WIDE = 500
"""Columns of what is no terminal."""


class Screen(Console):
    """Text is shown as it is: nothing in it is markup, for it may be a stranger's. Nor can it steer a terminal:
    there it is spelled out before it is laid out. In files and pipes nothing is cut or folded."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = WIDE

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible_lines(text) if self.is_terminal else text, **options)


output = Screen()
errors = Screen(stderr=True)


# What a long command is at: a spinner on a terminal, a line now and then where nobody watches one.

FIRST_LINE_AFTER = 5.0
"""Seconds; what is quicker says nothing."""
SECONDS_BETWEEN_LINES = 15.0


@contextmanager
def stages(text: str) -> Iterator[Callable[[str], None]]:
    """Shows what goes on, on standard error; call what it gives with the next stage."""
    if errors.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=errors, transient=True) as bar:
            task = bar.add_task(text, total=None)
            yield lambda stage: bar.update(task, description=stage)
        return
    with ProgressLines(text, lambda line: click.echo(line, err=True)) as lines:
        yield lines.tell


class ProgressLines:
    """One line after a while and then every so often, from a thread of its own: the work may be one long call."""

    def __init__(self, text: str, write: Callable[[str], None], first: float = FIRST_LINE_AFTER) -> None:
        self._stage = text
        self._write = write
        self._first = first
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._talk, name="progress", daemon=True)

    def tell(self, stage: str) -> None:
        self._stage = stage

    def __enter__(self) -> "ProgressLines":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _talk(self) -> None:
        wait = self._first
        while not self._ended.wait(wait):
            self._write(f"cubecast: {self._stage} ({time.monotonic() - self._began:.0f} s so far)")
            wait = SECONDS_BETWEEN_LINES
