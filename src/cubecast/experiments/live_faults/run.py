"""Runs schedules against live clusters and judges what is left. A schedule is data that prints, drawn from a seed: what
happens to the cluster, when, and for how long.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any

from cubecast import __version__
from cubecast.check import check_directory
from cubecast.check.verdict import Report, Verdict
from cubecast.errors import BadInput, CubecastError
from cubecast.experiments.live_faults.cluster import ClusterConfig, LiveCluster
from cubecast.experiments.live_faults.link_proxy import Conditions
from cubecast.experiments.members import MemberFailed
from cubecast.ids import NodeId
from cubecast.net.node.input_log import replay_all
from cubecast.protocol.families import find
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import collect


class Accident(StrEnum):
    KILL = "kill"
    RESTART = "restart"
    """Killed, and started again as a new process without memory."""
    STOP = "stop"
    """The process stands still (SIGSTOP) and goes on."""
    DELAY = "delay"
    STALL = "stall"
    """Nothing passes between two nodes, either way; what was sent arrives afterwards."""
    CUT = "cut"
    """The same in one direction only."""
    DAMAGE = "damage"
    """Bytes between two nodes are changed."""
    RESET = "reset"
    """Their connections break, again and again."""


@dataclass(frozen=True, slots=True)
class Fault:
    at: float
    """Seconds after the load began."""
    accident: Accident
    node: NodeId
    peer: NodeId | None = None
    """The other end, for accidents on links."""
    seconds: float = 0.0
    """How long it lasts; a kill is for ever."""
    amount: float = 0.0
    """Seconds of delay, the chance of damage to a piece, or seconds between two resets."""

    def __str__(self) -> str:
        where = f"{self.node}" if self.peer is None else f"{self.node}-{self.peer}"
        lasting = f" for {self.seconds:.2f} s" if self.seconds else ""
        amount = f" ({self.amount:g})" if self.amount else ""
        return f"{self.at:.2f} {self.accident} {where}{lasting}{amount}"

    @property
    def until(self) -> float:
        return self.at + self.seconds


@dataclass(frozen=True, slots=True)
class LiveSchedule:
    seed: int
    members: int
    faults: tuple[Fault, ...]
    rate: float = 100.0
    """Messages per second and member."""
    topics: int = 2

    def __str__(self) -> str:
        faults = ", ".join(map(str, self.faults)) or "nothing"
        return (
            f"seed {self.seed}: {self.members} members, {self.topics} topics, {self.rate:g} messages/s each; {faults}"
        )

    @property
    def killed(self) -> set[NodeId]:
        return {fault.node for fault in self.faults if fault.accident is Accident.KILL}

    @property
    def length(self) -> float:
        return max((fault.until for fault in self.faults), default=0.0)


def draw(seed: int, *, patience: float, members: int | None = None, faults: int | None = None) -> LiveSchedule:
    """One to five accidents within a few seconds; a minority at most is killed for good."""
    random = Random(seed)
    size = members or random.randint(3, 6)
    mortal = random.sample(range(size), (size - 1) // 2)
    chosen = sorted((_draw(random, size, mortal, patience) for _ in range(faults or random.randint(1, 5))), key=_when)
    return LiveSchedule(seed, size, tuple(_once_killed(chosen)), rate=random.choice((20.0, 100.0, 300.0)))


def _when(fault: Fault) -> float:
    return fault.at


def _draw(random: Random, size: int, mortal: list[NodeId], patience: float) -> Fault:
    accident = random.choice([one for one in Accident if one is not Accident.KILL or mortal])
    at, seconds = random.uniform(0.2, 2.0), random.uniform(0.2, 2.0) * patience
    node, peer = random.sample(range(size), 2)
    match accident:
        case Accident.KILL:
            return Fault(at, accident, random.choice(mortal))
        case Accident.RESTART:
            return Fault(at, accident, node, seconds=seconds / 2)
        case Accident.STOP:
            return Fault(at, accident, node, seconds=seconds)
        case Accident.DELAY:
            return Fault(at, accident, node, peer, seconds, amount=random.uniform(0.01, 0.3))
        case Accident.DAMAGE:
            return Fault(at, accident, node, peer, seconds, amount=random.uniform(0.01, 0.3))
        case Accident.RESET:
            return Fault(at, accident, node, peer, seconds, amount=random.uniform(0.02, 0.2))
        case _:
            return Fault(at, accident, node, peer, seconds)


def _once_killed(faults: list[Fault]) -> list[Fault]:
    """One accident per process at a time: those of a node that is killed or restarted begin and end before that."""
    kept: list[Fault] = []
    for fault in faults:
        same = [one for one in kept if one.peer is None and fault.peer is None and one.node == fault.node]
        if all(one.accident is not Accident.KILL and one.until < fault.at for one in same):
            kept.append(fault)
    return kept


# From what the members left behind to a verdict.


def collected(config: ClusterConfig, name: str) -> Path:
    """The members' journals as a trace dataset."""
    out = config.directory / "trace"
    parameters = {"members": config.members, "patience": config.patience, "round_length": config.round_length}
    family = find(config.settings.get("protocol", "cubecast"))
    info = RunInfo(
        name,
        family.name,
        family.promises,
        seed=config.seed,
        code_version=__version__,
        parameters=parameters,
        measured=family.measured,
    )
    collect(config.journals, out, info)
    return out


def judged(config: ClusterConfig, name: str) -> Report:
    """The reference checker's verdict on everything the protocol promises."""
    return check_directory(collected(config, name))


AFTERWARDS = 0.5
"""Seconds of further publishing after the last accident."""


class LiveFailure(CubecastError):  # noqa: N818 - a finding
    """A schedule that broke a promise; the text says everything needed to run it again."""


@dataclass
class Outcome:
    schedule: LiveSchedule
    report: Report
    statuses: dict[NodeId, dict[str, Any]]
    """Of the members that lived to the end, when nothing was under way any more."""
    gaps: int
    damaged: int
    resets: int
    steps_replayed: int

    @property
    def incarnations(self) -> dict[NodeId, int]:
        return {number: status["incarnation"] for number, status in self.statuses.items()}

    def to_json(self) -> dict[str, Any]:
        return {
            "schedule": str(self.schedule),
            "verdict": str(self.report.verdict),
            "deliveries": self.report.deliveries,
            "messages": self.report.messages,
            "incarnations": self.incarnations,
            "gaps": self.gaps,
            "damaged": self.damaged,
            "resets": self.resets,
            "steps_replayed": self.steps_replayed,
        }


@dataclass
class Happening:
    cluster: LiveCluster
    schedule: LiveSchedule
    started: float
    _impaired: list[Fault] = field(default_factory=list)

    async def everything(self) -> None:
        async with asyncio.TaskGroup() as group:
            for fault in self.schedule.faults:
                group.create_task(self._happen(fault))

    async def _happen(self, fault: Fault) -> None:
        await self._wait_until(fault.at)
        match fault.accident:
            case Accident.KILL:
                self.cluster.kill(fault.node)
            case Accident.RESTART:
                await self._restart(fault)
            case Accident.STOP:
                self.cluster.stop(fault.node)
                await self._wait_until(fault.until)
                self.cluster.resume(fault.node)
            case Accident.RESET:
                while asyncio.get_running_loop().time() < self.started + fault.until:
                    self._reset(fault)
                    await asyncio.sleep(fault.amount)
            case _:
                await self._impair(fault)

    async def _wait_until(self, at: float) -> None:
        await asyncio.sleep(max(0.0, self.started + at - asyncio.get_running_loop().time()))

    async def _restart(self, fault: Fault) -> None:
        self.cluster.kill(fault.node)
        await self.cluster.members[fault.node].ended()
        await self._wait_until(fault.until)
        try:
            await self.cluster.start_member(fault.node)
            await self.cluster.publish(self.schedule.rate, [fault.node])
        except MemberFailed:
            if not self.cluster.members[fault.node].was_killed:  # by the schedule, while it was starting
                raise

    def _reset(self, fault: Fault) -> None:
        assert fault.peer is not None
        self.cluster.reset(fault.node, fault.peer)

    async def _impair(self, fault: Fault) -> None:
        """What is impaired now: the last to end heals all, so that accidents on one link do not outlive each other."""
        assert fault.peer is not None
        conditions = Conditions(
            delay=fault.amount if fault.accident is Accident.DELAY else 0.0,
            standing=fault.accident in (Accident.STALL, Accident.CUT),
            damage=fault.amount if fault.accident is Accident.DAMAGE else 0.0,
        )
        both_ways = fault.accident is not Accident.CUT
        self._impaired.append(fault)
        self.cluster.impair(fault.node, fault.peer, conditions, both_ways=both_ways)
        await self._wait_until(fault.until)
        self._impaired.remove(fault)
        if not any({one.node, one.peer} == {fault.node, fault.peer} for one in self._impaired):
            self.cluster.heal_link(fault.node, fault.peer)


async def run_schedule(schedule: LiveSchedule, directory: Path, *, patience: float = 1.0) -> Outcome:
    """Raises LiveFailure, with the seed and the schedule, unless everything promised held."""
    topics = tuple(f"talk.{number}" for number in range(schedule.topics))
    config = ClusterConfig(
        members=schedule.members,
        seed=schedule.seed,
        directory=directory,
        topics=topics,
        inputs=True,
        patience=patience,
        round_length=patience / 4,
    )
    try:
        outcome = await _lived(config, schedule)
    except CubecastError as error:
        raise LiveFailure(f"{error}\n{schedule}") from error
    except ExceptionGroup as group:
        raise LiveFailure(f"{group.exceptions[0]}\n{schedule}") from group
    report = _kept(config, schedule, outcome.statuses)
    return replace(outcome, steps_replayed=_conforming(config, schedule), report=report)


async def _lived(config: ClusterConfig, schedule: LiveSchedule) -> Outcome:
    async with LiveCluster(config) as cluster:
        await cluster.publish(schedule.rate)
        await Happening(cluster, schedule, asyncio.get_running_loop().time()).everything()
        await asyncio.sleep(AFTERWARDS)
        await cluster.drain()
        statuses = await cluster.statuses()
        await cluster.conclude()
        gaps = sum(event["event"] == "gap" for member in cluster.members.values() for event in member.events)
        damaged = sum(proxy.damaged for proxy in cluster.proxies.values())
        resets = sum(proxy.resets for proxy in cluster.proxies.values())
        return Outcome(schedule, Report("", {}, ()), statuses, gaps, damaged, resets, 0)


def _conforming(config: ClusterConfig, schedule: LiveSchedule) -> int:
    """Every machine, told again what it was told, does again what it did."""
    steps, differences = replay_all(config.input_logs)
    if differences:
        raise LiveFailure(f"a replayed machine does something else: {differences[0]}\n{schedule}")
    return steps


def _kept(config: ClusterConfig, schedule: LiveSchedule, statuses: dict[NodeId, dict[str, Any]]) -> Report:
    wrong = [f"member {number} got {one['wrong']}" for number, one in statuses.items() if one["wrong"]]
    if wrong:
        raise LiveFailure(f"messages nobody published: {wrong}\n{schedule}")
    report = judged(config, f"live-faults-{schedule.seed}")
    if report.verdict is not Verdict.VALID:
        reasons = [violation.reason for violation in report.witnesses[:3]] or list(report.unknown_because)
        raise LiveFailure(f"{report.verdict}, {sorted(report.violated())}: {reasons}\n{schedule}")
    return report


# Many seeded schedules against live clusters, one after another, until one breaks a promise.

PATIENCE = 1.0


def torment(directory: Path, seed: int, schedules: int) -> Iterator[Outcome]:
    """Runs the schedules of `seed`, `seed` + 1, …, each below a directory of its own; raises LiveFailure."""
    if schedules < 1:
        raise BadInput(f"at least one schedule must run, not {schedules}")
    below = {one: directory / f"seed-{one}" for one in range(seed, seed + schedules)}
    for place in below.values():
        if place.exists():
            raise BadInput(f"{place} exists; name another directory for --live")
    for one, place in below.items():
        yield asyncio.run(run_schedule(draw(one, patience=PATIENCE), place, patience=PATIENCE))


def verified_with_spark(directory: Path, master: str | None, conf: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The same traces, judged a second time by the pipeline: verdicts by run."""
    from cubecast.pipeline.session import spark_session
    from cubecast.pipeline.verify import verify

    traces = sorted(directory.glob("seed-*/trace"))
    verified = verify(spark_session(master, conf), traces)
    return {Path(one.run.directory).parent.name: one.verdict for one in verified.runs}
