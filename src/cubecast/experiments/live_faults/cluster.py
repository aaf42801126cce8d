"""The supervisor: starts members behind proxies, lets accidents happen to them, waits until all is well again."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from cubecast.addresses import Address
from cubecast.errors import CubecastError
from cubecast.experiments.live_faults.link_proxy import Conditions, Direction, LinkProxy, free_addresses
from cubecast.experiments.members import MEMBER, Answering
from cubecast.ids import NodeId, Topic

POLL = 0.1
PATIENCE = 60.0
"""Seconds for whatever should come about in a few: members share the machine with others."""


class NotAtRest(CubecastError):  # noqa: N818 - a finding
    """After healing the members did not come to rest in time."""


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """Detection is fast, so that tests are; one detection period is patience plus a round."""

    members: int
    seed: int
    directory: Path
    """Journals, inputs and last words go below it."""
    topics: tuple[Topic, ...] = ("talk",)
    proxies: bool = True
    inputs: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    """Of every node, besides what the supervisor chooses."""
    module: str = MEMBER
    """What a member runs."""
    logs: bool = False
    """Does every member keep a log, in a directory that survives it?"""
    addresses: tuple[Address, ...] = ()
    """Where members listen, when it is not any free place on loopback."""
    prefixes: tuple[tuple[str, ...], ...] = ()
    """Commands that start each member, for instance in a network of its own."""

    round_length: float = 0.25
    patience: float = 1.0
    retry: float = 0.3
    start_timeout: float = PATIENCE

    @property
    def detection_period(self) -> float:
        return self.patience + self.round_length

    @property
    def journals(self) -> Path:
        return self.directory / "journals"

    @property
    def records(self) -> Path:
        """What applications recorded."""
        return self.directory / "records"

    @property
    def input_logs(self) -> Path:
        return self.directory / "inputs"


class LiveCluster:
    """`async with LiveCluster(config) as cluster`: members are up and subscribed; at the end no process is left."""

    def __init__(self, config: ClusterConfig) -> None:
        self.config = config
        self.members: dict[NodeId, Answering] = {}
        self.proxies: dict[tuple[NodeId, NodeId], LinkProxy] = {}
        self._through: dict[tuple[NodeId, NodeId], Address] = {}
        self.addresses = list(config.addresses) or free_addresses(config.members)
        """A member keeps its address when it is started again, so that proxies know where to lead."""
        self._random = Random(config.seed)

    async def __aenter__(self) -> Self:
        self.config.directory.mkdir(parents=True, exist_ok=True)
        try:
            await self._start()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self._end()

    # Starting and ending

    async def _start(self) -> None:
        await self._open_proxies()
        numbers = range(self.config.members)
        await self.start_member(0)
        await asyncio.gather(*(self.start_member(number) for number in numbers[1:]))
        await self.until_together(numbers)

    async def _open_proxies(self) -> None:
        if self.config.proxies:
            for one, other in permutations(range(self.config.members), 2):
                proxy = LinkProxy(self.addresses[other], Random(self._random.getrandbits(32)))
                self._through[one, other] = await proxy.open()
                self.proxies[one, other] = proxy

    async def start_member(self, number: NodeId) -> None:
        """A new process for that id, for the first time or again; returns when it takes part and is subscribed."""
        config = self.config
        contacts = [str(self.addresses[member.number]) for member in self.living]
        settings: dict[str, Any] = {
            "node": number,
            "listen": str(self.addresses[number]),
            "dimension": max(1, (config.members - 1).bit_length()),
            "join": contacts,
            "dial_through": {str(to): str(at) for (of, to), at in self._through.items() if of == number},
            "journal": str(config.journals),
            "patience": config.patience,
            **config.settings,
        }
        if "protocol" not in settings:
            settings = {"round_length": config.round_length, "retry": config.retry, **settings}
        if config.module != MEMBER:
            settings["records"] = str(config.records)
        if config.logs:
            settings |= {"data": str(config.directory / f"data-{number}"), "log": [">"]}
        if config.inputs:
            settings["inputs"] = str(config.input_logs)
        prefix = config.prefixes[number] if config.prefixes else ()
        errors = config.directory / f"member-{number}.stderr"
        member = await Answering.begin(number, settings, errors, config.module, prefix)
        self.members[number] = member
        await member.started(config.start_timeout)
        for topic in config.topics:
            await member.ask("subscribe", topic=topic)

    async def _end(self) -> None:
        for member in self.members.values():
            if member.is_alive:
                member.signal(signal.SIGKILL)
        for member in self.members.values():
            await member.ended()
        for proxy in self.proxies.values():
            proxy.close()

    # Load

    @property
    def living(self) -> list[Answering]:
        return [member for member in self.members.values() if member.is_alive]

    async def publish(self, rate: float, members: Iterable[NodeId] | None = None) -> None:
        """Each of these members publishes that many messages per second from now on."""
        numbers = self.members if members is None else members
        for number in numbers:
            await self.members[number].ask("publish", topics=list(self.config.topics), rate=rate)

    async def statuses(self) -> dict[NodeId, dict[str, Any]]:
        living = self.living
        found = await asyncio.gather(*(member.ask("status") for member in living))
        return {member.number: status for member, status in zip(living, found, strict=True)}

    # Accidents

    def kill(self, number: NodeId) -> None:
        self.members[number].signal(signal.SIGKILL)

    def stop(self, number: NodeId) -> None:
        self.members[number].signal(signal.SIGSTOP)

    def resume(self, number: NodeId) -> None:
        self.members[number].signal(signal.SIGCONT)

    def impair(self, one: NodeId, other: NodeId, conditions: Conditions, *, both_ways: bool = True) -> None:
        """The bytes from one node to another, whichever of them dialled, meet these conditions."""
        self.proxies[one, other].conditions[Direction.THERE] = conditions
        self.proxies[other, one].conditions[Direction.BACK] = conditions
        if both_ways:
            self.impair(other, one, conditions, both_ways=False)

    def reset(self, one: NodeId, other: NodeId) -> None:
        self.proxies[one, other].reset()
        self.proxies[other, one].reset()

    def heal_link(self, one: NodeId, other: NodeId) -> None:
        self.proxies[one, other].heal()
        self.proxies[other, one].heal()

    def heal(self) -> None:
        for proxy in self.proxies.values():
            proxy.heal()

    # Waiting

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str, timeout: float = PATIENCE) -> float:
        """Wait until that is so; how long it took. Says what the members wait for when it does not come about."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        while not await holds():
            if loop.time() - started > timeout:
                raise NotAtRest(f"not within {timeout} s: {what}. {await self._waiting()}")
            await asyncio.sleep(POLL)
        return loop.time() - started

    async def until_together(self, numbers: Iterable[NodeId], timeout: float = PATIENCE) -> float:
        """Wait until these members live with each other and nobody else."""
        together = sorted(numbers)

        async def agreed() -> bool:
            found = await asyncio.gather(*(self.members[number].ask("status") for number in together))
            return all(status["living"] == together and status["active"] for status in found)

        return await self.until(agreed, f"nodes {together} live together", timeout)

    async def drain(self, timeout: float = PATIENCE) -> None:
        """Nobody publishes any more; wait until nothing is under way anywhere."""
        self.heal()
        for member in self.living:
            await member.ask("quiet")
        before: dict[NodeId, int] = {}

        async def is_quiet() -> bool:
            nonlocal before
            statuses = await self.statuses()
            delivered = {number: status["delivered"] for number, status in statuses.items()}
            still, before = delivered == before, delivered
            living = sorted(statuses)
            return still and all(
                status["active"] and not status["waiting"] and not status["unstable"] and status["living"] == living
                for status in statuses.values()
            )

        await self.until(is_quiet, "everything published is delivered everywhere", timeout)

    async def conclude(self) -> None:
        """The history of all living members ends here, at rest; what comes after is no part of it."""
        await asyncio.gather(*(member.ask("conclude") for member in self.living))

    async def _waiting(self) -> str:
        statuses = await self.statuses()
        lines = [
            f"{number}: incarnation {status['incarnation']}, lives with {status['living']}, "
            f"{status['unstable']} unstable, waits for {status['waiting'][:5]}"
            for number, status in statuses.items()
        ]
        return "; ".join(lines)
