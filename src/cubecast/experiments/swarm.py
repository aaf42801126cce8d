"""Swarm testing with the reference checker as judge: run schedules until one breaks a promise, then make it small."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import process_time
from typing import Any

from cubecast.check.checker import check_trace
from cubecast.check.verdict import Rate, Verdict
from cubecast.errors import BadInput
from cubecast.experiments import beyond_promises as beyond
from cubecast.experiments.tally import Reached
from cubecast.protocol.families import find
from cubecast.sim.faults import Partition
from cubecast.sim.schedule import Schedule, shrink
from cubecast.sim.script import scenario
from cubecast.sim.swarm import draw
from cubecast.sim.swarm_run import Outcome, Wrap, run
from cubecast.trace.reader import Trace

CAREFUL_EVERY = 4
"""Every so manieth schedule checks the machines' invariants after every step."""
CHUNK = 50


@dataclass(frozen=True)
class Failure:
    """A schedule that breaks a promise, and how."""

    schedule: Schedule
    kind: str
    """A property, `stuck`, `assertion`, or what else users care about, such as `missed` or `not published`."""
    reasons: tuple[str, ...]

    @property
    def replay(self) -> str:
        return f"cubecast swarm --replay '{self.schedule.to_text()}'"

    def script(self, wrap: Wrap | None = None) -> str:
        """The same by hand, step by step."""
        return scenario(self.schedule, self.kind, wrap)

    def to_json(self) -> dict[str, Any]:
        return {
            "seed": self.schedule.seed,
            "property": self.kind,
            "reasons": list(self.reasons),
            "faults": [str(fault) for fault in self.schedule.faults],
            "nodes": len(self.schedule.nodes),
            "replay": self.replay,
            "script": self.script(),
        }


@dataclass
class Tally:
    """What a swarm run did."""

    schedules: int = 0
    deliveries: int = 0
    messages: int = 0
    gaps: int = 0
    reincarnations: int = 0
    cpu_seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    reached: Reached = field(default_factory=Reached)
    failure: Failure | None = None
    measured: dict[str, Rate] = field(default_factory=dict)
    premises: Counter[str] = field(default_factory=Counter)
    """How often each promise had occasion to be broken."""

    @property
    def vacuous(self) -> list[str]:
        """Promises that no schedule put to the test."""
        return [name for name, count in self.premises.items() if not count]

    def measure(self, found: Mapping[str, Rate]) -> None:
        self.measured |= {name: self.measured.get(name, Rate(0, 0)) + rate for name, rate in found.items()}

    def add(self, other: "Tally") -> None:
        for name in ("schedules", "deliveries", "messages", "gaps", "reincarnations", "cpu_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults += other.faults
        self.measure(other.measured)
        self.reached.add(other.reached)
        self.premises.update(other.premises)
        self.failure = self.failure or other.failure

    def to_json(self, protocol: str, seed: int) -> dict[str, Any]:
        return {
            "protocol": protocol,
            "seed": seed,
            "schedules": self.schedules,
            "violations": 0 if self.failure is None else 1,
            "deliveries": self.deliveries,
            "messages": self.messages,
            "lost_and_announced": self.gaps,
            "reincarnations": self.reincarnations,
            "faults": dict(sorted(self.faults.items())),
            "measured": {name: rate.to_json() for name, rate in self.measured.items()},
            **self.reached.to_json(),
            "vacuous": self.vacuous,
            "schedules_per_cpu_second": self.schedules / self.cpu_seconds if self.cpu_seconds else 0.0,
            "failure": None if self.failure is None else self.failure.to_json(),
        }


def judge(
    schedule: Schedule,
    wrap: Wrap | None = None,
    *,
    careful: bool = True,
    promises: tuple[str, ...] | None = None,
    tally: Tally | None = None,
) -> Failure | None:
    """Run a schedule and check everything its protocol promises, or these promises instead."""
    outcome = run(schedule, wrap, careful=careful, promises=promises)
    if outcome.crash:
        return Failure(schedule, "assertion", (outcome.crash,))
    if outcome.stuck:
        return Failure(schedule, "stuck", tuple(outcome.stuck))
    report = check_trace(Trace(outcome.info, outcome.events))
    if tally is not None:
        tally.deliveries += report.deliveries
        tally.messages += report.messages
        tally.measure(report.measured)
        tally.premises.update(report.premises)
        kinds = Counter(event.kind for event in outcome.events)
        tally.gaps += kinds["gap"]
        tally.reincarnations += kinds["stop"]
        tally.reached.note(schedule, outcome)
    if report.verdict is Verdict.VALID:
        return _beyond(schedule, outcome)
    reasons = (
        *(f"node {one.node} row {one.seq}: {one.promise}: {one.reason}" for one in report.witnesses),
        *report.unknown_because,
    )
    return Failure(schedule, min(report.violated(), default="UNKNOWN"), reasons)


def _beyond(schedule: Schedule, outcome: Outcome) -> Failure | None:
    """What the trace alone cannot show."""
    if "K3" not in outcome.info.promises:
        return None
    events, asked = outcome.events, outcome.asked
    begins = {one.node: one.topic.removesuffix("*") for one in schedule.actions if one.kind == "follow"}
    interests = {node: (since, begins[node]) for node, since in outcome.interests_known.items()}
    for kind, reasons in (
        ("needless restart", beyond.needless_restarts(events, asked)),
        ("everybody gave way", beyond.everybody_gave_way(events, schedule.nodes) if _is_split(schedule) else ()),
        ("not published", beyond.requested_and_published(events, asked)),
        ("not subscribed", beyond.wished_and_open(events, asked, outcome.interests_known)),
        ("left and still addressed", beyond.traffic_to_leavers(events, asked)),
        ("unnamed gap", beyond.unnamed_gaps(events, asked)),
        ("missed", beyond.missed_although_ready(events, interests)),
    ):
        if reasons:
            return Failure(schedule, kind, reasons)
    return None


def _is_split(schedule: Schedule) -> bool:
    """Is a single partition all that happens?"""
    return len(schedule.faults) == 1 and isinstance(schedule.faults[0], Partition) and not schedule.faults[0].one_way


def sweep(protocol: str, first: int, count: int) -> Tally:
    """Schedules first … first + count − 1, up to the first failure."""
    tally, started = Tally(), process_time()
    for seed in range(first, first + count):
        schedule = draw(protocol, seed)
        tally.schedules += 1
        tally.faults.update(type(fault).__name__ for fault in schedule.faults)
        tally.failure = judge(schedule, careful=seed % CAREFUL_EVERY == 0, tally=tally)
        if tally.failure is not None:
            break
    tally.cpu_seconds = process_time() - started
    return tally


def swarm(protocol: str, seed: int, schedules: int, jobs: int = 1) -> Iterator[Tally]:
    """Yields the tally so far; the last one holds the first failure, shrunk, if there is one."""
    find(protocol)
    if schedules < 1:
        raise BadInput(f"at least one schedule must run, not {schedules}")
    total = Tally()
    chunks = [(protocol, at, min(CHUNK, seed + schedules - at)) for at in range(seed, seed + schedules, CHUNK)]
    with _mapper(jobs) as each:
        for tally in each(sweep, *zip(*chunks, strict=True)):
            total.add(tally)
            if total.failure is not None:
                total.failure = shrunk(total.failure)
                yield total
                return
            yield total


def shrunk(failure: Failure, wrap: Wrap | None = None) -> Failure:
    """The same failure on a smaller schedule."""

    def fails(schedule: Schedule) -> bool:
        found = judge(schedule, wrap)
        return found is not None and found.kind == failure.kind

    smaller = judge(shrink(failure.schedule, fails), wrap)
    return smaller or failure


@contextmanager
def _mapper(jobs: int) -> Iterator[Any]:
    if jobs == 1:
        yield map
        return
    with ProcessPoolExecutor(min(jobs, os.cpu_count() or 1)) as pool:
        yield pool.map
