"""The trace as local histories: logs, the subscriptions in them, and what each topic's messages are.

Only `seq` orders a log. Where rows are missing or unreadable the log ends for us; what follows has no sure meaning.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from operator import attrgetter
from typing import Final, TypeAlias

from cubecast.check.filters import Attributes, Predicate, attributes_of
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind

Publisher: TypeAlias = tuple[NodeId, Incarnation]

Step: TypeAlias = tuple[Event, Topic, MessageId | None]
"""A row that moves knowledge: `publish`, `deliver`, or `subscribed` (which names no message)."""

# A message's identity is cut out of the row by position: naming the fields one by one takes three times as long.
assert Event._fields[5:9] == ("topic", "source", "source_incarnation", "counter")

_SEQ: Final = attrgetter("seq")
LAST_KINDS: Final = frozenset({Kind.QUIESCENT, Kind.STOP, Kind.CRASH})


def message_of(row: Event) -> MessageId:
    return tuple.__new__(MessageId, row[6:9])


def publisher_of(message: MessageId) -> Publisher:
    return message[:2]


@dataclass(slots=True, eq=False)
class Log:
    """The kept rows of one (node, incarnation), in order."""

    node: NodeId
    incarnation: Incarnation
    rows: list[Event]
    whole: bool
    """Nothing is missing up to a row that may be the last."""
    steps: list[Step] = field(default_factory=list)

    @property
    def correct(self) -> bool:
        return self.whole and self.rows[-1].kind == Kind.QUIESCENT

    @property
    def goes_on(self) -> bool:
        """The process of the node's log before goes on in it."""
        start = self.rows[0] if self.rows else None
        return start is not None and start.kind == Kind.START and start.source_incarnation is not None

    @property
    def last_seq(self) -> int:
        return self.rows[-1].seq if self.rows else 0


@dataclass(slots=True, eq=False)
class Process:
    """One program, from its start to its end."""

    logs: list[Log]

    @property
    def steps(self) -> list[Step]:
        return self.logs[0].steps if len(self.logs) == 1 else [step for log in self.logs for step in log.steps]

    @property
    def alive(self) -> bool:
        """To the end of the run."""
        return self.logs[-1].correct

    @property
    def suspected(self) -> bool:
        """Others held it faulty at some time although it lived."""
        return len(self.logs) > 1


@dataclass(slots=True, eq=False)
class Subscription:
    """σ: one subscription of one log to one topic."""

    log: Log
    topic: Topic
    ordinal: int
    opened_seq: int
    wants: Predicate | None = None
    """Of the attributes of messages; None: it wants all."""
    confirmed: Event | None = None
    leaving: bool = False
    stated: dict[Publisher, Counter] = field(default_factory=dict)
    """Starting cuts as its rows state them."""
    deliveries: dict[MessageId, Event] = field(default_factory=dict)
    """D(σ) in order, each message at its first delivery."""
    repeats: list[Event] = field(default_factory=list)
    gaps: list[Event] = field(default_factory=list)
    received: dict[MessageId, None] = field(default_factory=dict)
    """What packets brought while it was open."""
    heard: set[Publisher] = field(default_factory=set)
    """Publishers of what it delivered."""

    @property
    def correct(self) -> bool:
        return self.log.correct and not self.leaving

    def is_for(self, message: MessageId, topic: "TopicHistory") -> bool:
        """Does its filter match the message? What was never published matches none, and is blamed on others."""
        return self.wants is None or (message in topic.published and self.wants(topic.attributes(message)))

    def answers_for(self, message: MessageId) -> bool:
        """Does it lie beyond the beginning? A log that goes on after another names what its process missed before."""
        publisher = publisher_of(message)
        return not self.log.goes_on or (
            (publisher in self.stated or publisher in self.heard) and not self.excludes(message)
        )

    def excludes(self, message: MessageId) -> bool:
        """Is it inside a cut this subscription stated itself?"""
        return message.counter <= self.stated.get(publisher_of(message), 0)


@dataclass(slots=True, eq=False)
class TopicHistory:
    """Everything the trace says about one topic."""

    topic: Topic
    published: dict[MessageId, Event] = field(default_factory=dict)
    acknowledged: list[MessageId] = field(default_factory=list)
    failed: dict[MessageId, Event] = field(default_factory=dict)
    deliveries: list[tuple[MessageId, Event]] = field(default_factory=list)
    strays: list[Event] = field(default_factory=list)
    """Deliveries outside any subscription."""
    settled: dict[Publisher, set[MessageId]] = field(default_factory=lambda: defaultdict(set))
    """Per log, what `discard` and `gap` rows name."""
    subscriptions: list[Subscription] = field(default_factory=list)
    count: dict[Publisher, int] = field(default_factory=dict)
    """How many messages each publisher published."""

    def attributes(self, message: MessageId) -> Attributes:
        return attributes_of(self.published[message].attributes, self.topic)


def logs_of(events: Iterable[Event]) -> tuple[list[Log], list[tuple[Event, Event]]]:
    """The logs by (node, incarnation), and pairs of rows that claim the same place in one."""
    rows: defaultdict[Publisher, list[Event]] = defaultdict(list)
    for event in events:
        rows[event.node, event.incarnation].append(event)
    logs, repeated = [], []
    for (node, incarnation), log_rows in sorted(rows.items()):
        log_rows.sort(key=_SEQ)
        repeated += [(a, b) for a, b in pairwise(log_rows) if a.seq == b.seq]
        complete = log_rows[0].seq == 0 and log_rows[-1].seq == len(log_rows) - 1
        kept = log_rows if complete else _before_hole(log_rows)
        logs.append(Log(node, incarnation, kept, whole=len(kept) == len(log_rows)))
    return logs, repeated


def processes_of(logs: Iterable[Log]) -> list[Process]:
    """A log whose first row says so continues the process of the node's previous one."""
    processes: list[Process] = []
    for log in sorted(logs, key=attrgetter("node", "incarnation")):
        if log.goes_on and processes and processes[-1].logs[0].node == log.node:
            processes[-1].logs.append(log)
        else:
            processes.append(Process([log]))
    return processes


def _before_hole(rows: list[Event]) -> list[Event]:
    return [row for _, row in takewhile(lambda one: one[1].seq == one[0], enumerate(rows))]
