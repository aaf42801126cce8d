"""K0: reads each log in order into subscriptions and topic histories, noting where it contradicts itself."""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from cubecast.check.filters import UnreadableFilterError, attributes_of, predicate
from cubecast.check.history import LAST_KINDS, Log, Subscription, TopicHistory, message_of, publisher_of
from cubecast.check.verdict import Violation
from cubecast.ids import MessageId, Topic
from cubecast.trace.event import Event, Inside
from cubecast.trace.schema import Kind

_OnMessage: TypeAlias = Callable[[Event, TopicHistory, MessageId], None]
_OnTopic: TypeAlias = Callable[[Event, TopicHistory], None]
_IRRELEVANT: Final = frozenset({Kind.START, Kind.SEND, Kind.SUSPECT, Kind.VIEW})


def read_topics(logs: Iterable[Log]) -> tuple[dict[Topic, TopicHistory], list[Violation]]:
    """What the logs say, topic by topic, and every violation of K0 that a single log shows."""
    topics: dict[Topic, TopicHistory] = {}
    violations: list[Violation] = []
    for log in logs:
        reading = _Reading(log, topics)
        reading.run()
        violations += reading.violations
    return topics, violations


def repeated_places(repeated: Iterable[tuple[Event, Event]]) -> list[Violation]:
    return [
        Violation(
            "K0",
            row.node,
            row.incarnation,
            row.seq,
            f"two rows of this log have seq {row.seq}: a {other.kind} and a {row.kind}",
            topic=row.topic,
            other_seq=other.seq,
        )
        for other, row in repeated
    ]


def is_readable(row: Event) -> bool:
    """Do its filter and its attributes mean something?"""
    try:
        if row.filter is not None and row.kind == Kind.SUBSCRIBE:
            predicate(row.filter)
        if row.attributes is not None and row.kind == Kind.PUBLISH:
            attributes_of(row.attributes, "")
    except UnreadableFilterError:
        return False
    return True


class _Reading:
    """One pass over one log."""

    def __init__(self, log: Log, topics: dict[Topic, TopicHistory]) -> None:
        self.log = log
        self.me = (log.node, log.incarnation)
        self.topics = topics
        self.open: dict[Topic, Subscription] = {}
        self.opened: dict[Topic, int] = {}
        self.violations: list[Violation] = []
        self.about_messages: dict[str, _OnMessage] = {
            Kind.PUBLISH: self.on_publish,
            Kind.ACKNOWLEDGED: self.on_acknowledged,
            Kind.FAILED: self.on_failed,
            Kind.DELIVER: self.on_deliver,
            Kind.GAP: self.on_gap,
            Kind.UNDELIVERED: self.on_undelivered,
        }
        self.about_topics: dict[str, _OnTopic] = {
            Kind.SUBSCRIBE: self.on_subscribe,
            Kind.CUT: self.on_cut,
            Kind.SUBSCRIBED: self.on_subscribed,
            Kind.UNSUBSCRIBE: self.on_unsubscribe,
            Kind.UNSUBSCRIBED: self.on_unsubscribed,
        }

    def run(self) -> None:
        """Read up to the end or the first unreadable row."""
        rows = self.log.rows
        for place, row in enumerate(rows):
            if row.kind not in _IRRELEVANT and not self.read(row):
                self.log.rows = rows[:place]
                self.log.whole = False
                return
        if not rows or rows[-1].kind not in LAST_KINDS:
            self.log.whole = False

    def read(self, row: Event) -> bool:
        """Take in a row; False when it lacks what its kind needs, or its kind is unknown."""
        kind = row.kind
        if kind in self.about_messages:
            if None in row[5:9] or (row.counter or 0) < 1 or not is_readable(row):
                return False
            self.about_messages[kind](row, self.topic(row), message_of(row))
        elif kind in self.about_topics:
            if row.topic is None or (kind == Kind.CUT and row.cut is None) or not is_readable(row):
                return False
            self.about_topics[kind](row, self.topic(row))
        elif kind == Kind.RECEIVE:
            self.on_receive(row)
        elif kind == Kind.DISCARD:
            self.on_discard(row)
        elif kind in LAST_KINDS:
            self.on_end(row)
        else:
            return False
        return True

    def topic(self, row: Event) -> TopicHistory:
        assert row.topic is not None, "the caller looked"
        topic = self.topics.get(row.topic)
        if topic is None:
            topic = self.topics[row.topic] = TopicHistory(row.topic)
        return topic

    def on_end(self, row: Event) -> None:
        if row.kind != Kind.QUIESCENT and row.seq != self.log.last_seq:
            after = self.log.rows[row.seq + 1]
            self.broken(after, f"a {after.kind} row follows the {row.kind} of this log", other_seq=row.seq)

    def on_publish(self, row: Event, topic: TopicHistory, message: MessageId) -> None:
        expected = topic.count.get(self.me, 0) + 1
        if publisher_of(message) != self.me:
            self.broken(row, f"the log publishes {message} in the name of another node or incarnation")
            return
        if message.counter != expected:
            self.broken(row, f"publication number {message.counter} follows number {expected - 1} of this log")
        topic.count[self.me] = message.counter
        topic.published.setdefault(message, row)
        self.log.steps.append((row, topic.topic, message))

    def on_acknowledged(self, row: Event, topic: TopicHistory, message: MessageId) -> None:
        if publisher_of(message) != self.me or message not in topic.published:
            self.broken(row, f"{message} is acknowledged but was not published before by this log")
        topic.acknowledged.append(message)

    def on_failed(self, row: Event, topic: TopicHistory, message: MessageId) -> None:
        if publisher_of(message) == self.me:
            topic.failed.setdefault(message, row)

    def on_deliver(self, row: Event, topic: TopicHistory, message: MessageId) -> None:
        topic.deliveries.append((message, row))
        self.log.steps.append((row, topic.topic, message))
        sigma = self.open.get(topic.topic)
        if sigma is None:
            topic.strays.append(row)
            return
        if message in sigma.deliveries:
            sigma.repeats.append(row)
        else:
            sigma.deliveries[message] = row
            sigma.heard.add(message[:2])

    def on_receive(self, row: Event) -> None:
        named = () if None in row[6:9] else (Inside(*message_of(row)),)
        for message in named if row.messages is None else row.messages:
            topic = row.topic if message.topic is None else message.topic
            sigma = None if topic is None else self.open.get(topic)
            if sigma is not None and message.counter >= 1:
                sigma.received[MessageId(*message[:3])] = None

    def on_gap(self, row: Event, topic: TopicHistory, message: MessageId) -> None:
        topic.settled[self.me].add(message)
        sigma = self.open.get(topic.topic)
        if sigma is not None:
            sigma.gaps.append(row)

    def on_undelivered(self, row: Event, topic: TopicHistory, message: MessageId) -> None:
        """What it means is judged by processes, not by logs."""

    def on_discard(self, row: Event) -> None:
        if None not in row[5:9]:
            self.topic(row).settled[self.me].add(message_of(row))

    def on_subscribe(self, row: Event, topic: TopicHistory) -> None:
        if topic.topic in self.open:
            self.broken(row, "a subscription begins while one to the same topic is open")
            return
        ordinal = self.opened.get(topic.topic, 0)
        self.opened[topic.topic] = ordinal + 1
        wants = None if row.filter is None else predicate(row.filter)
        sigma = self.open[topic.topic] = Subscription(self.log, topic.topic, ordinal, row.seq, wants)
        topic.subscriptions.append(sigma)

    def on_cut(self, row: Event, topic: TopicHistory) -> None:
        sigma = self.subscription(row, topic)
        if sigma is None:
            return
        for stated in row.cut or ():
            publisher = publisher_of(stated)
            if publisher in sigma.stated:
                self.broken(row, f"the cut of publisher {publisher} is stated a second time")
            elif publisher in sigma.heard:
                self.broken(row, f"the cut of publisher {publisher} is stated after its first delivery")
            else:
                sigma.stated[publisher] = stated.counter

    def on_subscribed(self, row: Event, topic: TopicHistory) -> None:
        sigma = self.subscription(row, topic)
        if sigma is None:
            return
        if sigma.confirmed is not None:
            self.broken(row, "the subscription is confirmed a second time", other_seq=sigma.confirmed.seq)
            return
        sigma.confirmed = row
        self.log.steps.append((row, topic.topic, None))
        self.on_cut(row, topic)

    def on_unsubscribe(self, row: Event, topic: TopicHistory) -> None:
        sigma = self.subscription(row, topic)
        if sigma is None:
            return
        if sigma.leaving:
            self.broken(row, "the subscription is left a second time")
        sigma.leaving = True

    def on_unsubscribed(self, row: Event, topic: TopicHistory) -> None:
        sigma = self.subscription(row, topic)
        if sigma is not None:
            sigma.leaving = True
            del self.open[topic.topic]

    def subscription(self, row: Event, topic: TopicHistory) -> Subscription | None:
        sigma = self.open.get(topic.topic)
        if sigma is None:
            self.broken(row, f"a {row.kind} row outside any subscription to the topic")
        return sigma

    def broken(self, row: Event, reason: str, other_seq: int | None = None) -> None:
        message = message_of(row) if row.counter is not None else None
        sigma = self.open.get(row.topic) if row.topic is not None else None
        self.violations.append(
            Violation(
                "K0",
                row.node,
                row.incarnation,
                row.seq,
                reason,
                topic=row.topic,
                ordinal=None if sigma is None else sigma.ordinal,
                message=message,
                other_seq=other_seq,
            )
        )
