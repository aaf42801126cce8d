"""One turn of the event loop, for connections that share it: what is sent in it is written once, at its end."""

import asyncio
from collections.abc import Callable


class Turn:
    """Collects who has something to write. The handler of a read holds the turn and releases it, which ends it without
    another pass through the event loop; otherwise it ends by itself."""

    __slots__ = ("_scheduled", "is_held", "is_short", "writers")

    def __init__(self) -> None:
        self.writers: list[Callable[[], None]] = []
        """Who has something to write."""
        self._scheduled = False
        self.is_held = False
        self.is_short = False
        """One thing is handled in it: what is to be written for it need not wait for anything else."""

    def add(self, write: Callable[[], None]) -> None:
        self.writers.append(write)
        if not self._scheduled and not self.is_held:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._end)

    def release(self) -> None:
        """The code that set `is_held` calls this, whatever happened. A context manager would cost as much as all the
        rest."""
        self.is_held = self.is_short = False
        if self.writers:
            self.end()

    def end(self) -> None:
        """Write now."""
        writers, self.writers = self.writers, []
        for write in writers:
            write()

    def _end(self) -> None:
        self._scheduled = False
        self.end()
