"""One turn of the event loop, for connections that share it: what is sent in it is written once, at its end."""

import asyncio
from collections.abc import Callable


class Turn:
    """Collects who has something to write. Whoever handles a read holds the turn and ends it without another pass
    through the event loop; otherwise it ends by itself."""

    __slots__ = ("_scheduled", "_writers", "is_held", "is_short")

    def __init__(self) -> None:
        self._writers: list[Callable[[], None]] = []
        self._scheduled = False
        self.is_held = False
        self.is_short = False
        """One thing is handled in it: what is to be written for it need not wait for anything else."""

    def add(self, write: Callable[[], None]) -> None:
        self._writers.append(write)
        if not self._scheduled and not self.is_held:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._end)

    def __enter__(self) -> None:
        self.is_held = True

    def __exit__(self, *_: object) -> None:
        self.is_held = self.is_short = False
        self.end()

    def end(self) -> None:
        """Write now."""
        writers, self._writers = self._writers, []
        for write in writers:
            write()

    def _end(self) -> None:
        self._scheduled = False
        self.end()
