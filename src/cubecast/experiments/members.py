"""Member processes as their supervisors see them: lines of JSON in and out, signals, deadlines, and last words.

What the lines mean is between the supervisor and the module that the member runs.
"""

import asyncio
import json
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cubecast.errors import CubecastError

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


# The supervisor's side of a live run: member processes, what they report, and waiting for it with a deadline.
#
# A member reads orders and writes events, each a line of JSON. Nobody sleeps to wait for anybody: a run goes on when
# what it waits for was reported, and fails with the member's own words when it was not in time.


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


class MemberGroup:
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


# A member that accidents happen to: commands in, reports out, signals.

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
