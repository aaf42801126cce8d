"""P14, P15, P16: what a living process may rely on through all of its incarnations.

A process begins with a log whose `start` row does not say that it was resumed; logs that say so continue it. What a
process wants of a topic is one *continued subscription* over all of these logs, as long as the application does not end
it. Happened-before runs on through the logs of a process. Follows decision 0037.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from cubecast.check.causality import NEVER, TopicCausality, Vector, rebuild
from cubecast.check.facts import Facts
from cubecast.check.history import Log, Process, Publisher, Subscription, message_of, processes_of, publisher_of
from cubecast.check.verdict import Violation
from cubecast.ids import MessageId, Topic
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind

PREMISED: Final = frozenset({"P14", "P15", "P16"})
"""They say nothing about a run in which no living process was ever suspected."""


@dataclass(eq=False)
class Continued:
    """Σ: a subscription of a process, through its lives."""

    process: Process
    topic: Topic
    parts: list[Subscription]
    accounts: list[tuple[MessageId, Event]] = field(default_factory=list)
    """Deliveries and gaps in order, each message at its first."""
    delivered: set[MessageId] = field(default_factory=set)

    @property
    def correct(self) -> bool:
        return self.process.alive and self.parts[-1].correct and self.parts[-1].log is self.process.logs[-1]

    def ready(self) -> bool:
        """From the first confirmation on it has a claim; what was before is forgotten."""
        while self.parts and self.parts[0].confirmed is None:
            del self.parts[0]
        return bool(self.parts)

    def gather(self) -> None:
        seen: set[MessageId] = set()
        for sigma in self.parts:
            rows = sorted((*sigma.deliveries.values(), *sigma.gaps), key=lambda row: row.seq)
            self.delivered |= sigma.deliveries.keys()
            for row in rows:
                message = message_of(row)
                if message not in seen:
                    seen.add(message)
                    self.accounts.append((message, row))


class Continuity:
    """The trace by processes."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.processes = processes_of(facts.logs.values())
        self.of = {(log.node, log.incarnation): one for one in self.processes for log in one.logs}
        steps = [one.steps for one in self.processes]
        self.causality: dict[Topic, TopicCausality] = rebuild(steps, facts.topics, facts.bits)[0]
        """Happened-before with program order that runs on through the logs of a process."""
        self.told: dict[Process, list[Event]] = {
            one: [row for log in one.logs for row in log.rows if row.kind == Kind.UNDELIVERED] for one in self.processes
        }

    @property
    def vacuous(self) -> bool:
        """No process that lived to the end was ever held faulty."""
        return not any(one.alive and one.suspected for one in self.processes)

    @cached_property
    def continued(self) -> list[Continued]:
        """Subscriptions of processes that are there to the end and still want the topic."""
        found = [one for name in self.facts.topics for one in self._continued(name) if one.correct and one.ready()]
        for one in found:
            one.gather()
        return found

    def _continued(self, name: Topic) -> Iterator[Continued]:
        by_log: defaultdict[Log, list[Subscription]] = defaultdict(list)
        for sigma in self.facts.topics[name].subscriptions:
            if sigma.wants is None:  # what is owed to a process is said of whole topics
                by_log[sigma.log].append(sigma)
        for process in self.processes:
            current: Continued | None = None
            for log in process.logs:
                if current is not None and not by_log[log]:
                    yield current
                    current = None
                for sigma in by_log[log]:
                    if current is not None and sigma.ordinal == 0 and not current.parts[-1].leaving:
                        current.parts.append(sigma)
                        continue
                    if current is not None:
                        yield current
                    current = Continued(process, name, [sigma])
            if current is not None:
                yield current

    def owed_after(self, one: Continued) -> Vector:
        """Per publisher's life, the last counter the subscription has no claim to.

        A process owes all it publishes from the first message on that the subscription was told of (or that it is known
        to be confirmed before), in this life and all later ones.
        """
        causality, topic = self.causality[one.topic], self.facts.topics[one.topic]
        bits = sum(self.facts.bits[sigma] for sigma in one.parts)
        first: dict[Publisher, int] = {}
        for message, _ in one.accounts:
            life = publisher_of(message)
            first[life] = min(first.get(life, NEVER), message.counter)
        for life, count in topic.count.items():
            known = next((c for c in range(1, count + 1) if causality.confirmations[MessageId(*life, c)] & bits), NEVER)
            if known < first.get(life, NEVER):
                first[life] = known
        owed = np.full(len(causality.publishers), NEVER, np.int64)
        for process in self.processes:
            began = False
            for log in process.logs:
                life = (log.node, log.incarnation)
                if life in causality.column:
                    if began:
                        owed[causality.column[life]] = 0
                    elif life in first:
                        began = True
                        owed[causality.column[life]] = first[life] - 1
        return owed

    def owed(self, one: Continued) -> Iterator[MessageId]:
        """All publications it has a claim to."""
        causality, after = self.causality[one.topic], self.owed_after(one)
        for column, last in enumerate(after.tolist()):
            if last != NEVER:
                for counter in range(last + 1, int(causality.published[column]) + 1):
                    yield causality.message(column, counter)

    def concerned(self, one: Continued, message: MessageId) -> bool:
        """Was one of the two ends suspected although it lived?"""
        publisher = self.of[publisher_of(message)]
        return publisher is not one.process and (publisher.suspected or one.process.suspected)

    @cached_property
    def premises(self) -> dict[str, int]:
        """How many pairs of subscription and message each property spoke about."""
        counts = dict.fromkeys(sorted(PREMISED), 0)
        if self.vacuous:
            return counts
        for one in self.continued:
            acknowledged = set(self.facts.topics[one.topic].acknowledged)
            for message in self.owed(one):
                if self.concerned(one, message):
                    counts["P14"] += self.of[publisher_of(message)].alive
                    counts["P15"] += (one.topic, message) in self.held and message in acknowledged
            counts["P16"] += sum(1 for _ in self.named(one))
        return counts

    @cached_property
    def held(self) -> set[tuple[Topic, MessageId]]:
        """What some process that lives to the end published or was handed."""
        held = set()
        for name, topic in self.facts.topics.items():
            rows = (*topic.published.items(), *topic.deliveries)
            held |= {(name, message) for message, row in rows if self.of[row.node, row.incarnation].alive}
        return held

    def named(self, one: Continued) -> Iterator[tuple[MessageId, Event]]:
        """Messages of other living processes that a gap takes from this subscription."""
        for message, row in one.accounts:
            publisher = self.of.get(publisher_of(message))
            is_other = publisher is not None and publisher is not one.process and publisher.alive
            if is_other and row.kind == Kind.GAP and message not in one.delivered:
                yield message, row


def continuity_of(facts: Facts) -> Continuity:
    """Worked out once per trace."""
    if facts.continuity is None:
        facts.continuity = Continuity(facts)
    assert isinstance(facts.continuity, Continuity)
    return facts.continuity


def no_silent_loss(facts: Facts) -> Iterator[Violation]:
    """P14: between living processes everything is delivered or named by a gap, before what follows from it."""
    continuity = continuity_of(facts)
    if continuity.vacuous:
        return
    for one in continuity.continued:
        yield from _out_of_order(continuity, one)
        known = {message for message, _ in one.accounts}
        for message in continuity.owed(one):
            if message not in known and continuity.of[publisher_of(message)].alive:
                yield _lacks("P14", one, message, "is neither delivered nor named by a gap")


def _out_of_order(continuity: Continuity, one: Continued) -> Iterator[Violation]:
    """Deliveries with a cause, or an earlier message of the same process, that is not accounted for yet."""
    causality = continuity.causality[one.topic]
    reach = continuity.owed_after(one)
    for column, life in enumerate(causality.publishers):
        if life not in continuity.of or not continuity.of[life].alive:
            reach[column] = NEVER
    beyond: defaultdict[int, set[int]] = defaultdict(set)
    for message, row in one.accounts:
        column = causality.column[publisher_of(message)]
        if row.kind == Kind.DELIVER and message in causality.topic.published:
            causes = causality.closure[causality.row[message]].copy()
            causes[column] = message.counter - 1
            early = np.flatnonzero(causes > reach)
            if len(early):
                cause = causality.message(int(early[0]), int(reach[early[0]]) + 1)
                yield _of("P14", one, row, f"{tuple(message)} is delivered before {tuple(cause)}, its cause", cause)
        beyond[column].add(message.counter)
        while int(reach[column]) + 1 in beyond[column]:
            reach[column] += 1


def acknowledged_is_kept(facts: Facts) -> Iterator[Violation]:
    """P15: what was acknowledged is delivered to every living process whose subscription it is for."""
    continuity = continuity_of(facts)
    if continuity.vacuous:
        return
    for one in continuity.continued:
        acknowledged = set(facts.topics[one.topic].acknowledged)
        for message in continuity.owed(one):
            if message in acknowledged and message not in one.delivered and (one.topic, message) in continuity.held:
                yield _lacks("P15", one, message, "was acknowledged but is not delivered here")


def publisher_knows(facts: Facts) -> Iterator[Violation]:
    """P16: a living publisher is told of each message that a gap takes from a living subscriber, once."""
    continuity = continuity_of(facts)
    for rows in continuity.told.values():
        told: set[tuple[Topic | None, MessageId]] = set()
        for row in rows:
            if (row.topic, message_of(row)) in told:
                message = message_of(row)
                reason = f"the publisher is told a second time that {tuple(message)} is not delivered"
                yield Violation("P16", row.node, row.incarnation, row.seq, reason, row.topic, message=message)
            told.add((row.topic, message_of(row)))
    if continuity.vacuous:
        return
    for one in continuity.continued:
        for message, row in continuity.named(one):
            publisher = continuity.of[publisher_of(message)]
            if not any(t.topic == one.topic and message_of(t) == message for t in continuity.told[publisher]):
                yield _of("P16", one, row, f"{tuple(message)} is lost here and its publisher is not told")


def _lacks(promise: str, one: Continued, message: MessageId, what: str) -> Violation:
    log = one.process.logs[-1]
    ordinal = one.parts[-1].ordinal
    reason = f"{tuple(message)} {what}"
    where = (promise, log.node, log.incarnation, log.last_seq, reason)
    return Violation(*where, topic=one.topic, ordinal=ordinal, message=message, certain=False)


def _of(promise: str, one: Continued, row: Event, reason: str, other: MessageId | None = None) -> Violation:
    ordinal = next(sigma.ordinal for sigma in one.parts if sigma.log.incarnation == row.incarnation)
    where = (promise, row.node, row.incarnation, row.seq, reason)
    return Violation(*where, topic=one.topic, ordinal=ordinal, message=message_of(row), other=other, certain=False)
