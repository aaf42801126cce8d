"""What a mutator needs: a clean trace understood well enough to break exactly one thing, and scissors."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cubecast.check.facts import Deliveries, Facts, gather
from cubecast.check.history import Publisher, logs_of
from cubecast.check.well_formed import read_topics
from cubecast.ids import MessageId
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind


class Study:
    """A clean trace, its logs and what the checker knows about it. Never changed: edits are made on copies."""

    def __init__(self, events: Sequence[Event]) -> None:
        logs, _ = logs_of(events)
        topics, _ = read_topics(logs)
        self.facts: Facts = gather(logs, topics)[0]
        self.rows: dict[Publisher, list[Event]] = {(log.node, log.incarnation): log.rows for log in logs}
        self.views: list[Deliveries] = [view for view in self.facts.all_deliveries() if view.messages]
        self.all_views: list[Deliveries] = list(self.facts.all_deliveries())

    def of_kind(self, *kinds: Kind) -> list[Event]:
        return [row for rows in self.rows.values() for row in rows if row.kind in kinds]

    def log(self, row: Event) -> list[Event]:
        return self.rows[row.node, row.incarnation]

    def publishes_between(self, first: Event, last: Event) -> bool:
        """Does the log publish on the topic between two of its rows? Moving one past the other would change causes."""
        between = self.log(first)[first.seq : last.seq]
        return any(row.kind == Kind.PUBLISH and row.topic == first.topic for row in between)

    def depends(self, view: Deliveries, effect: MessageId, cause: MessageId) -> bool:
        causality = view.causality
        frontier = causality.causes([causality.row[effect]])[0]
        return bool(cause.counter <= frontier[causality.column[cause[:2]]])

    def owes(self, view: Deliveries, message: MessageId) -> bool:
        """Must this correct subscription deliver the message, even if its own delivery of it did not show that?"""
        publisher = message[:2]
        if not view.sigma.correct or view.sigma.excludes(message):
            return False
        others = (other for other in view.messages if other[:2] == publisher and other != message)
        return publisher in view.sigma.stated or next(others, None) is not None


class Edit:
    """Cut and paste on a copy of the logs; `result` numbers the rows again so that the mutant looks plausible."""

    def __init__(self, study: Study) -> None:
        self.rows = {log: list(rows) for log, rows in study.rows.items()}

    def _place(self, row: Event) -> tuple[list[Event], int]:
        rows = self.rows[row.node, row.incarnation]
        return rows, next(place for place, other in enumerate(rows) if other is row)

    def remove(self, *gone: Event) -> "Edit":
        for row in gone:
            rows, place = self._place(row)
            del rows[place]
        return self

    def replace(self, row: Event, new: Event) -> "Edit":
        rows, place = self._place(row)
        rows[place] = new
        return self

    def insert_before(self, anchor: Event, new: Event) -> "Edit":
        rows, place = self._place(anchor)
        rows.insert(place, new._replace(node=anchor.node, incarnation=anchor.incarnation))
        return self

    def insert_after(self, anchor: Event, new: Event) -> "Edit":
        rows, place = self._place(anchor)
        rows.insert(place + 1, new._replace(node=anchor.node, incarnation=anchor.incarnation))
        return self

    def move_before(self, row: Event, anchor: Event) -> "Edit":
        return self.remove(row).insert_before(anchor, row)

    def move_after(self, row: Event, anchor: Event) -> "Edit":
        return self.remove(row).insert_after(anchor, row)

    def result(self) -> list[Event]:
        return [row._replace(seq=seq) for rows in self.rows.values() for seq, row in enumerate(rows)]

    def unnumbered(self) -> list[Event]:
        """The rows with the numbers they had: for mutants that are about those numbers."""
        return [row for rows in self.rows.values() for row in rows]


Mutation: TypeAlias = Callable[[Study, random.Random], list[Event] | None]


@dataclass(frozen=True)
class Mutator:
    """A way to break a trace, and what the checker must then say: one of these is violated, or nothing is known."""

    name: str
    mutate: Mutation
    violates: frozenset[str]
    total_order: bool = False
    """Only a trace that keeps a total order can be broken in this way."""

    def apply(self, events: Sequence[Event], rng: random.Random) -> list[Event] | None:
        """The mutant, or None when this trace offers nothing to break."""
        return self.mutate(Study(events), rng)


@dataclass
class MutationRegistry:
    mutators: dict[str, Mutator] = field(default_factory=dict)

    def breaks(self, *violates: str, total_order: bool = False) -> Callable[[Mutation], Mutation]:
        """Register a mutation under its own name; no property means that UNKNOWN is the right answer."""

        def register(mutation: Mutation) -> Mutation:
            name = mutation.__name__
            self.mutators[name] = Mutator(name, mutation, frozenset(violates), total_order)
            return mutation

        return register


REGISTRY: Final = MutationRegistry()


def pick(rng: random.Random, choices: Iterable[tuple[Event, ...]]) -> tuple[Event, ...] | None:
    """One of the candidates, by the caller's dice; None when there are none."""
    candidates = list(choices)
    return rng.choice(candidates) if candidates else None


def row_about(kind: Kind, like: Event, message: MessageId | None = None) -> Event:
    """A new row of that kind on the same topic, at the time of another."""
    source, incarnation, counter = message if message is not None else (None, None, None)
    return Event(like.node, like.incarnation, 0, like.time, str(kind), like.topic, source, incarnation, counter)
