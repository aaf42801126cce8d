"""A member that accidents happen to: commands in, reports out, signals."""

import asyncio
import signal
from collections import deque
from pathlib import Path
from typing import Any

from cubecast.errors import CubecastError
from cubecast.experiments.members import MemberProcess

MEMBER = "cubecast.experiments.live_faults.member"
STACK_TIME = 1.0


class MemberFailed(CubecastError):  # noqa: N818 - says who
    """A member process ended or fell silent although nobody made it."""


class Answering(MemberProcess):
    """Answers every command, and reports some things unasked."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, errors: Path) -> None:
        super().__init__(name, process, errors)
        self.number = int(name)
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.events: deque[dict[str, Any]] = deque()
        """What it reported unasked, oldest first."""
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def begin(
        cls, number: int, settings: dict[str, Any], errors: Path, module: str = MEMBER, prefix: tuple[str, ...] = ()
    ) -> "Answering":
        member = await cls.start(module, str(number), errors, prefix=prefix)
        member.write(settings)
        return member

    async def started(self, timeout: float) -> None:
        await self._answer(timeout)

    async def ask(self, do: str, *, timeout: float = 30.0, **how: Any) -> dict[str, Any]:
        """Give a command and wait until it is done."""
        self.write({"do": do, **how})
        return await self._answer(timeout)

    async def ended(self) -> None:
        await self.gone()
        await self._reading

    async def _answer(self, timeout: float) -> dict[str, Any]:
        try:
            answer = await asyncio.wait_for(self._answers.get(), timeout)
        except TimeoutError:
            await self._ask_where_it_is()
            raise MemberFailed(f"member {self.name} does not answer. Its last words: {self.last_words()}") from None
        if answer["event"] == "ended":
            raise MemberFailed(f"member {self.name} ended. Its last words: {self.last_words()}")
        return answer

    async def _ask_where_it_is(self) -> None:
        """A member that is alive and silent writes down what it is doing."""
        if self.is_alive:
            self.signal(signal.SIGUSR1)
            await asyncio.sleep(STACK_TIME)

    async def _read(self) -> None:
        async for what in self.lines():
            if what["event"] in ("started", "done"):
                self._answers.put_nowait(what)
            else:
                self.events.append(what)
        self._answers.put_nowait({"event": "ended"})
