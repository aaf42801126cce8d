"""What a swarm run did and reached: counts, how they are distributed over schedules, and what each promise was about.

A promise that had no premise was not tested, however many schedules ran; a test holds floors on these figures.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cubecast.sim.schedule import Schedule
from cubecast.sim.swarm_run import Outcome
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind

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

    def add(self, other: "Reached") -> None:
        for name, values in other.values.items():
            self.values[name] += values
        self.premises += other.premises
        self.settings += other.settings

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
        tested = schedule.settings.get("detection") == "diagnosis"
        self.settings["tested by each other"] += tested
        self.settings["crashes reported by nobody"] += schedule.detection_delay is None
        self.settings["live window"] += schedule.settings.get("window") == "16"

    def to_json(self) -> dict[str, Any]:
        return {
            "distribution": {name: distribution(values) for name, values in self.values.items()},
            "premises": dict(sorted(self.premises.items())),
            "settings": dict(sorted(self.settings.items())),
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
