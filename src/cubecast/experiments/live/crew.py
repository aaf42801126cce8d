"""The supervisor's side of a live run: member processes, what they report, and waiting for it with a deadline.

A member reads orders and writes events, each a line of JSON. Nobody sleeps to wait for anybody: a run goes on when what
it waits for was reported, and fails with the member's own words when it was not in time.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cubecast.errors import CubecastError
from cubecast.experiments.members import MemberProcess


class RunFailed(CubecastError):  # noqa: N818 - says what happened
    """A live run did not come to where it should; nothing of it counts."""


class Member(MemberProcess):
    """One process. `latest` holds its newest event of every kind."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, errors: Path) -> None:
        super().__init__(name, process, errors)
        self.latest: dict[str, dict[str, Any]] = {}
        self.may_end = False
        """It was told to leave."""

    def order(self, do: str, **arguments: Any) -> None:
        self.write({"do": do, **arguments})

    @property
    def has_failed(self) -> bool:
        return self.code is not None and not self.may_end and not self.was_killed


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
            member.kill()
        await asyncio.gather(*self._readers)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    @property
    def living(self) -> list[Member]:
        return [member for member in self if member.code is None]

    async def start(self, name: str, **options: Any) -> Member:
        """A member process with these options; it takes part when it says so."""
        errors = self._logs / f"{name}.log"
        member = self._members[name] = await Member.start(self._module, name, errors, json.dumps(options))
        self._readers.append(asyncio.ensure_future(self._read(member)))
        return member

    async def _read(self, member: Member) -> None:
        async for event in member.lines():
            member.latest[event.pop("event")] = event
            self._changed.set()
        await member.gone()
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
                raise RunFailed(f"member {member.name} ended with code {member.code}: {member.last_words()}")
