"""A member process as its supervisor sees it: commands in, reports out, signals."""

import asyncio
import json
import os
import signal
import sys
from collections import deque
from pathlib import Path
from typing import Any

from cubecast.errors import CubecastError

MEMBER = "cubecast.experiments.live_faults.member"
MAX_LINE = 1 << 24
STACK_TIME = 1.0


class MemberFailed(CubecastError):  # noqa: N818 - says who
    """A member process ended or fell silent although nobody made it."""


class MemberProcess:
    def __init__(self, number: int, process: asyncio.subprocess.Process, errors: Path) -> None:
        self.number = number
        self._process = process
        self._errors = errors
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.events: deque[dict[str, Any]] = deque()
        """What it reported unasked, oldest first."""
        self._reading = asyncio.ensure_future(self._read())
        self.was_killed = False

    @classmethod
    async def start(cls, number: int, settings: dict[str, Any], errors: Path) -> "MemberProcess":
        with errors.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", MEMBER),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                limit=MAX_LINE,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            )
        member = cls(number, process, errors)
        member._write(settings)
        return member

    async def started(self, timeout: float) -> None:
        await self._answer(timeout)

    async def ask(self, do: str, *, timeout: float = 10.0, **how: Any) -> dict[str, Any]:
        """Give a command and wait until it is done."""
        self._write({"do": do, **how})
        return await self._answer(timeout)

    def signal(self, number: signal.Signals) -> None:
        self.was_killed = self.was_killed or number is signal.SIGKILL
        self._process.send_signal(number)

    @property
    def is_alive(self) -> bool:
        return not self.was_killed and self._process.returncode is None

    async def ended(self) -> None:
        await self._process.wait()
        await self._reading

    def _write(self, what: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write((json.dumps(what) + "\n").encode())

    async def _answer(self, timeout: float) -> dict[str, Any]:
        try:
            answer = await asyncio.wait_for(self._answers.get(), timeout)
        except TimeoutError:
            await self._ask_where_it_is()
            raise MemberFailed(f"member {self.number} does not answer. {self._story()}") from None
        if answer["event"] == "ended":
            raise MemberFailed(f"member {self.number} ended. {self._story()}")
        return answer

    async def _ask_where_it_is(self) -> None:
        """A member that is alive and silent writes down what it is doing."""
        if self.is_alive:
            self.signal(signal.SIGUSR1)
            await asyncio.sleep(STACK_TIME)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            if line.endswith(b"\n"):
                what = json.loads(line)
                if what["event"] in ("started", "done"):
                    self._answers.put_nowait(what)
                else:
                    self.events.append(what)
        self._answers.put_nowait({"event": "ended"})

    def _story(self) -> str:
        last = self._errors.read_text(errors="replace")[-2000:]
        return f"Its last words: {last}" if last else "It said nothing."
