"""Swarm testing with the reference checker as judge: run schedules until one breaks a promise, then make it small."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import process_time
from typing import Any, Final

from cubecast.check.checker import check_trace
from cubecast.check.verdict import Rate, Verdict
from cubecast.errors import BadInput
from cubecast.experiments import beyond_promises as beyond
from cubecast.protocol.families import find
from cubecast.protocol.masks import ids_of, mask_of
from cubecast.sim.faults import ClockJump, Detour, LateTimers, Partition, Pause, TimersTwice, nodes_of
from cubecast.sim.schedule import Schedule, shrink
from cubecast.sim.script import scenario
from cubecast.sim.swarm import draw
from cubecast.sim.swarm_run import Outcome, Wrap, run
from cubecast.trace.event import Event
from cubecast.trace.reader import Trace
from cubecast.trace.schema import Kind

# What a swarm run did and reached: counts, how they are distributed over schedules, and what each promise was about.
#
# A promise that had no premise was not tested, however many schedules ran; a test holds floors on these figures.

DISTRIBUTED: Final = (
    "nodes",
    "deliveries",
    "crashes",
    "gaps",
    "reincarnations",
    "delivered_by_returned",
    "published_after_healing",
)
QUANTILES: Final = (0.1, 0.5, 0.9, 1.0)


@dataclass
class Reached:
    """Per schedule, one number of each kind; and over all, what promises were about."""

    values: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in DISTRIBUTED})
    premises: Counter[str] = field(default_factory=Counter)
    settings: Counter[str] = field(default_factory=Counter)
    sequences: Counter[str] = field(default_factory=Counter)
    """How often each row of events was played."""

    def add(self, other: "Reached") -> None:
        for name, values in other.values.items():
            self.values[name] += values
        self.premises += other.premises
        self.settings += other.settings
        self.sequences += other.sequences

    def note(self, schedule: Schedule, outcome: Outcome) -> None:
        kinds = Counter(event.kind for event in outcome.events)
        crashed = {event.node for event in outcome.events if event.kind == Kind.CRASH}
        lives_of_returned = {
            (event.node, event.incarnation)
            for event in outcome.events
            if event.kind == Kind.START and event.incarnation and event.node in crashed
        }
        told = {
            "nodes": len(schedule.nodes),
            "deliveries": kinds[Kind.DELIVER],
            "crashes": kinds[Kind.CRASH],
            "gaps": kinds[Kind.GAP],
            "reincarnations": kinds[Kind.STOP],
            "delivered_by_returned": sum(
                event.kind == Kind.DELIVER and (event.node, event.incarnation) in lives_of_returned
                for event in outcome.events
            ),
            "published_after_healing": sum(
                event.kind == Kind.PUBLISH and event.time > schedule.heal_at for event in outcome.events
            ),
        }
        for name, value in told.items():
            self.values[name].append(value)
        self.premises += premises(outcome.events)
        if schedule.sequence:
            self.sequences[schedule.sequence] += 1
        tested = schedule.settings.get("detection") == "diagnosis"
        self.settings["tested by each other"] += tested
        self.settings["crashes reported by nobody"] += schedule.detection_delay is None
        self.settings["live window"] += schedule.settings.get("window") == "16"

    def to_json(self) -> dict[str, Any]:
        return {
            "distribution": {name: distribution(values) for name, values in self.values.items()},
            "premises": dict(sorted(self.premises.items())),
            "settings": dict(sorted(self.settings.items())),
            "sequences": dict(sorted(self.sequences.items())),
        }


def distribution(values: Sequence[int]) -> dict[str, int]:
    """Quantiles, and in how many schedules there was any at all."""
    ordered = sorted(values)
    if not ordered:
        return {}
    points = {f"p{100 * q:g}": ordered[min(len(ordered) - 1, int(q * len(ordered)))] for q in QUANTILES}
    return points | {"total": sum(ordered), "schedules_with_any": sum(value > 0 for value in ordered)}


def premises(events: Iterable[Event]) -> Counter[str]:
    """How often the trace gives each promise something to say: the occasions on which it could have been broken."""
    found: Counter[str] = Counter()
    last: dict[tuple[int, int, str | None], tuple[int | None, int | None]] = {}
    for event in events:
        match event.kind:
            case Kind.DELIVER:
                _delivered(event, last, found)
            case Kind.PUBLISH:
                found["P13"] += bool(event.deps)
                found["P7 P8"] += sum(one.source != event.node for one in event.deps or ())
            case Kind.ACKNOWLEDGED:
                found["P3"] += 1
            case Kind.CUT | Kind.SUBSCRIBED if event.cut:
                found["K1 K2 K3"] += sum(one.counter > 0 for one in event.cut)
            case Kind.GAP:
                found["P12 lost"] += 1
            case Kind.RECEIVE:
                found["P12 received"] += 1
            case Kind.UNSUBSCRIBED:
                found["P11"] += 1
    return found


def _delivered(
    event: Event, last: dict[tuple[int, int, str | None], tuple[int | None, int | None]], found: Counter[str]
) -> None:
    other = event.source != event.node
    found["P1 P2 P4"] += other
    found["P1b"] += other and event.digest is not None
    found["P10"] += event.incarnation > 0
    place = (event.node, event.incarnation, event.topic)
    before = last.get(place)
    found["P5 P6"] += before == (event.source, event.source_incarnation)
    last[place] = (event.source, event.source_incarnation)


# Running schedules.

CAREFUL_EVERY = 4
"""Every so manieth schedule checks the machines' invariants after every step."""
CHUNK = 50
OUT_OF_TIME = (ClockJump, LateTimers, Pause, TimersTwice)
"""Faults that concern one node's clock and pace."""


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
    disturbed = _disturbed(schedule)
    for kind, reasons in (
        ("needless restart", beyond.needless_restarts(events, asked)),
        ("everybody gave way", beyond.everybody_gave_way(events, schedule.nodes) if _is_split(schedule) else ()),
        ("gave way again and again", beyond.gave_way_again_and_again(events) if _is_split(schedule) else ()),
        ("convicted by the slow", beyond.convicted_by_the_slow(events, disturbed) if disturbed else ()),
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
    """Is a single partition all that happens, perhaps with a long way between its sides?"""
    cuts = [fault for fault in schedule.faults if not isinstance(fault, Detour)]
    return len(cuts) == 1 and isinstance(cuts[0], Partition) and not cuts[0].one_way


def _disturbed(schedule: Schedule) -> int:
    """Mask of the nodes for which time goes wrong, when nothing else does and no clock runs backwards."""
    faults = schedule.faults
    backwards = any(isinstance(fault, ClockJump) and fault.ahead < 0 for fault in faults)
    if schedule.suspicions or backwards or not all(isinstance(fault, OUT_OF_TIME) for fault in faults):
        return 0
    return mask_of(node for fault in schedule.faults for node in ids_of(nodes_of(fault)))


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
