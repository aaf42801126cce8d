"""Everything the predicates look at, computed once per trace."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from cubecast.check.causality import NEVER, TopicCausality, Vector, rebuild
from cubecast.check.history import Log, Publisher, Subscription, TopicHistory, message_of, publisher_of
from cubecast.check.verdict import Violation
from cubecast.ids import Counter, MessageId, Topic
from cubecast.trace.event import Event

# Finds contradictions between sequences: what no single order of everything can satisfy.


def left_in_circles(sequences: Iterable[Sequence[MessageId]]) -> set[MessageId]:
    """Messages on, or squeezed between, cycles of the union of these orders; empty when there are none."""
    after: defaultdict[MessageId, set[MessageId]] = defaultdict(set)
    before: defaultdict[MessageId, set[MessageId]] = defaultdict(set)
    left: set[MessageId] = set()
    for sequence in sequences:
        left.update(sequence)
        for a, b in pairwise(sequence):
            after[a].add(b)
            before[b].add(a)
    for into, out in ((before, after), (after, before)):
        degree = {message: len(into[message] & left) for message in left}
        free = [message for message, count in degree.items() if not count]
        while free:
            message = free.pop()
            left.discard(message)
            for following in out[message]:
                if following in left:
                    degree[following] -= 1
                    if not degree[following]:
                        free.append(following)
    return left


class Deliveries:
    """D(σ) in numbers: one entry per delivery, columns over the topic's publishers."""

    def __init__(self, sigma: Subscription, bit: int, causality: TopicCausality) -> None:
        self.sigma = sigma
        self.causality = causality
        self.messages = list(sigma.deliveries)
        self.rows = np.array([causality.row[message] for message in self.messages], np.int64)
        self.columns = causality.columns[self.rows]
        self.counters = np.array([message.counter for message in self.messages], np.int64)
        self.start = causality.start(sigma, bit)

    @cached_property
    def unwanted(self) -> list[set[Counter]]:
        """Per publisher, what was published and the subscription's filter does not match."""
        found: list[set[Counter]] = [set() for _ in self.causality.publishers]
        if self.sigma.wants is not None:
            topic = self.causality.topic
            for message in topic.published:
                if not self.sigma.is_for(message, topic):
                    found[self.causality.column[publisher_of(message)]].add(message.counter)
        return found

    @cached_property
    def excluded(self) -> list[tuple[Publisher, Counter]]:
        """Per publisher with a stated cut, the last message that exists and is inside it."""
        last = np.minimum(self.start, self.causality.published)
        publishers = self.causality.publishers
        candidates = [(publishers[column], int(last[column])) for column in np.flatnonzero(last >= 1).tolist()]
        return [(publisher, counter) for publisher, counter in candidates if publisher in self.sigma.stated]

    @cached_property
    def causes(self) -> Vector:
        return self.causality.causes(self.rows)

    @cached_property
    def reach(self) -> Vector:
        """Before each delivery (and once after the last): up to where each publisher is accounted for without a hole.

        Accounted for is what the cut excludes, what was delivered, what a gap row excused and what no filter matches.
        """
        reach = np.empty((len(self.messages) + 1, len(self.start)), np.int64)
        reach[:] = self._at_first()
        for place, column, counter in self._accounts():
            reach[place, column] = counter
        return np.maximum.accumulate(reach, axis=0)

    def _at_first(self) -> list[int]:
        """The cut, and behind it what the filter does not match."""
        reach: list[int] = self.start.tolist()
        for column, skipped in enumerate(self.unwanted):
            while reach[column] + 1 in skipped:
                reach[column] += 1
        return reach

    def _accounts(self) -> Iterator[tuple[int, int, int]]:
        """(deliveries so far, publisher's column, its new reach), in order."""
        column_of = self.causality.column
        reach = self._at_first()
        beyond = [set(skipped) for skipped in self.unwanted]
        for place, message in self._deliveries_and_gaps():
            column, counter = column_of[publisher_of(message)], message.counter
            if counter == reach[column] + 1:
                while counter + 1 in beyond[column]:
                    counter += 1
                reach[column] = counter
                yield place, column, counter
            elif counter > reach[column]:
                beyond[column].add(counter)

    def _deliveries_and_gaps(self) -> Iterator[tuple[int, MessageId]]:
        gaps = iter(self.sigma.gaps)
        gap = next(gaps, None)
        for place, (message, row) in enumerate(self.sigma.deliveries.items()):
            while gap is not None and gap.seq < row.seq:
                yield place, message_of(gap)
                gap = next(gaps, None)
            yield place + 1, message

    @cached_property
    def last(self) -> Vector:
        """The highest counter of each publisher that was delivered."""
        last = np.zeros(len(self.start), np.int64)
        np.maximum.at(last, self.columns, self.counters)
        return last

    @cached_property
    def later(self) -> Vector:
        """After each delivery: the lowest counter of each publisher that is still to be delivered."""
        later = np.full((len(self.messages) + 1, len(self.start)), NEVER, np.int64)
        later[np.arange(len(self.messages)), self.columns] = self.counters
        return np.minimum.accumulate(later[::-1], axis=0)[::-1][1:]

    def is_implied(self, column: int) -> bool:
        publisher = self.causality.publishers[column]
        return publisher not in self.sigma.stated and publisher not in self.sigma.heard

    def violation(
        self, promise: str, row: Event, reason: str, other: MessageId | None = None, certain: bool = True
    ) -> Violation:
        other_row = self.sigma.deliveries.get(other) if other is not None else None
        return Violation(
            promise,
            row.node,
            row.incarnation,
            row.seq,
            reason,
            topic=self.sigma.topic,
            ordinal=self.sigma.ordinal,
            message=message_of(row) if row.counter is not None else None,
            other=other,
            other_seq=None if other_row is None else other_row.seq,
            certain=certain,
        )


@dataclass
class Facts:
    """A well-formed trace, ready to be judged."""

    logs: dict[Publisher, Log]
    topics: dict[Topic, TopicHistory]
    causality: dict[Topic, TopicCausality]
    bits: dict[Subscription, int]
    continuity: object = None
    """The same by processes, once it was asked for (`continuity.py`)."""

    @cached_property
    def deliveries(self) -> dict[Topic, list[Deliveries]]:
        return {
            name: [Deliveries(sigma, self.bits[sigma], self.causality[name]) for sigma in topic.subscriptions]
            for name, topic in self.topics.items()
        }

    @cached_property
    def circles(self) -> dict[Topic, set[MessageId]]:
        """Per topic, the messages whose delivery orders contradict one another."""
        return {name: left_in_circles([view.messages for view in views]) for name, views in self.deliveries.items()}

    def all_deliveries(self) -> Iterator[Deliveries]:
        for per_topic in self.deliveries.values():
            yield from per_topic

    def is_whole(self, publisher: Publisher) -> bool:
        log = self.logs.get(publisher)
        return log is not None and log.whole


def gather(logs: list[Log], topics: dict[Topic, TopicHistory]) -> tuple[Facts, list[Violation]]:
    """The facts, and the violations of K0 that only all logs together show."""
    subscriptions = [sigma for topic in topics.values() for sigma in topic.subscriptions]
    bits = {sigma: 1 << place for place, sigma in enumerate(subscriptions)}
    causality, circles = rebuild([log.steps for log in logs], topics, bits)
    return Facts({(log.node, log.incarnation): log for log in logs}, topics, causality, bits), circles
