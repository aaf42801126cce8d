"""Commands whose standard output, or all they say, is a terminal."""

import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from support.commands import DEADLINE, PROGRAM


@contextmanager
def on_a_terminal(*arguments: object) -> Iterator["Terminal"]:
    """Killed when the block ends."""
    screen, side = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=side,
        stderr=side,
        env=os.environ | {"COLUMNS": "200", "TERM": "xterm"},
    )
    os.close(side)
    try:
        yield Terminal(screen, process)
    finally:
        process.kill()
        process.wait(DEADLINE)
        os.close(screen)


class Terminal:
    def __init__(self, screen: int, process: subprocess.Popen[bytes]) -> None:
        self._screen = screen
        self._process = process
        self._read = b""

    def until(self, text: str) -> str:
        """All that was written so far, when this is among it; or when the command has ended."""
        while text.encode() not in self._read:
            try:
                more = os.read(self._screen, 1 << 16)
            except OSError:
                break  # nobody has the other side any more
            if not more:
                break
            self._read += more
        return self._read.decode()

    def all(self) -> str:
        """What was written until the command ended by itself."""
        found = self.until("\N{REPLACEMENT CHARACTER} never said")
        assert self._process.wait(DEADLINE) == 0, found
        return found
