"""The supervisor's side of a live run: member processes, what they report, and waiting for it with a deadline.

A member reads orders and writes events, each a line of JSON. Nobody sleeps to wait for anybody: a run goes on when what
it waits for was reported, and fails with the member's own words when it was not in time.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cubecast.errors import CubecastError

LAST_WORDS = 2000
"""Characters of a member's error output shown when it fails."""


class RunFailed(CubecastError):  # noqa: N818 - says what happened
    """A live run did not come to where it should; nothing of it counts."""


class Member:
    """One process. `latest` holds its newest event of every kind."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.latest: dict[str, dict[str, Any]] = {}
        self.may_end = False
        """It was killed or told to leave."""
        self.process = process
        self._log = log

    def order(self, do: str, **arguments: Any) -> None:
        """Tell it something; a member that is gone does not hear it, which its waiters notice."""
        assert self.process.stdin is not None
        if not self.process.stdin.is_closing():
            self.process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")

    def kill(self) -> None:
        self.may_end = True
        self.process.send_signal(signal.SIGKILL)

    @property
    def has_failed(self) -> bool:
        return self.process.returncode is not None and not self.may_end

    def last_words(self) -> str:
        text = self._log.read_text(errors="replace").strip() if self._log.exists() else ""
        return text[-LAST_WORDS:] or "it said nothing"


class Crew:
    """All members of a run; leaving the context ends those that still live."""

    def __init__(self, module: str, logs: Path) -> None:
        self._module = module
        self._logs = logs
        self._members: dict[str, Member] = {}
        self._readers: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._logs.mkdir(parents=True, exist_ok=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for member in self:
            if member.process.returncode is None:
                member.kill()
        await asyncio.gather(*self._readers)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    @property
    def living(self) -> list[Member]:
        return [member for member in self if member.process.returncode is None]

    async def start(self, name: str, **options: Any) -> Member:
        """A member process with these options; it takes part when it says so."""
        log = self._logs / f"{name}.log"
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", self._module, json.dumps(options)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        member = self._members[name] = Member(name, process, log)
        self._readers.append(asyncio.ensure_future(self._read(member)))
        return member

    async def _read(self, member: Member) -> None:
        assert member.process.stdout is not None
        async for line in member.process.stdout:
            event = json.loads(line)
            member.latest[event.pop("event")] = event
            self._changed.set()
        await member.process.wait()
        self._changed.set()

    async def until(self, happened: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until the members' reports make it true."""
        try:
            async with asyncio.timeout(seconds):
                while not happened():
                    self._check_nobody_failed()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise RunFailed(f"waited {seconds:.0f} s in vain for {what}") from None

    async def until_all(self, event: str, seconds: float, members: list[Member] | None = None) -> None:
        """Wait until each of them (all that live, unless told) reported an event of this kind."""
        members = self.living if members is None else members
        await self.until(
            lambda: all(event in member.latest for member in members), seconds, f"everybody to report {event!r}"
        )

    async def ask_all(self, do: str, event: str, seconds: float) -> dict[str, dict[str, Any]]:
        """Give all that live an order and gather their answers."""
        members = self.living
        for member in members:
            member.latest.pop(event, None)
            member.order(do)
        await self.until_all(event, seconds, members)
        return {member.name: member.latest[event] for member in members}

    def _check_nobody_failed(self) -> None:
        for member in self:
            if member.has_failed:
                code = member.process.returncode
                raise RunFailed(f"member {member.name} ended with code {code}: {member.last_words()}")
