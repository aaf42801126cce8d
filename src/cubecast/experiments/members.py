"""A member process as its supervisor sees it: lines of JSON in and out, signals, and what it said last.

What the lines mean is between the supervisor and the module that the member runs.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

MAX_LINE = 1 << 24
LAST_WORDS = 2000
"""Characters of a member's error output shown when it fails."""


class MemberProcess:
    def __init__(self, name: str, process: asyncio.subprocess.Process, errors: Path) -> None:
        self.name = name
        self._process = process
        self._errors = errors
        self.was_killed = False

    @classmethod
    async def start(cls, module: str, name: str, errors: Path, *arguments: str, prefix: tuple[str, ...] = ()) -> Self:
        """The module in a process of its own, started by the command `prefix` if there is one; its error output is
        added to the file."""
        with errors.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                *(*prefix, sys.executable, "-m", module, *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                limit=MAX_LINE,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            )
        return cls(name, process, errors)

    @property
    def code(self) -> int | None:
        """What it ended with; None while it lives."""
        return self._process.returncode

    @property
    def is_alive(self) -> bool:
        return not self.was_killed and self.code is None

    def write(self, what: dict[str, Any]) -> None:
        """Tell it something; one that is gone does not hear it, which its waiter notices."""
        stdin = self._process.stdin
        assert stdin is not None
        if not stdin.is_closing():
            stdin.write((json.dumps(what) + "\n").encode())

    async def lines(self) -> AsyncIterator[dict[str, Any]]:
        """What it says until it is gone; a last line that was torn by a kill is left out."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            if line.endswith(b"\n"):
                yield json.loads(line)

    def signal(self, number: signal.Signals) -> None:
        self.was_killed = self.was_killed or number is signal.SIGKILL
        if self.code is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)

    async def gone(self) -> None:
        await self._process.wait()

    def last_words(self) -> str:
        text = self._errors.read_text(errors="replace").strip() if self._errors.exists() else ""
        return text[-LAST_WORDS:] or "it said nothing"
