"""Rebuilds who could have known what: happened-before from publish and deliver positions, never from headers.

The causes of a message are closed under "earlier by the same publisher", so they are one number per publisher: its
frontier. The frontiers of a topic are the rows of one matrix, a column per publisher. All logs are replayed side by
side; a delivery waits for the replay of its publication. If everybody waits, time runs in a circle.
"""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from cubecast.check.history import Publisher, Step, Subscription, TopicHistory, message_of, publisher_of
from cubecast.check.verdict import Violation
from cubecast.ids import Counter, MessageId, Topic
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind

Vector: TypeAlias = npt.NDArray[np.int64]
NEVER: Final = int(np.iinfo(np.int64).max)
MOST_STEPS: Final = 8
"""Of a circle, shown in its witness."""


class TopicCausality:
    """Frontiers of one topic's messages, and the starting cuts of its subscriptions, as vectors over publishers."""

    def __init__(self, topic: TopicHistory) -> None:
        self.topic = topic
        messages = _named_messages(topic)
        publishers = {publisher_of(message) for message in messages}
        publishers.update(*(sigma.stated for sigma in topic.subscriptions))
        self.publishers: list[Publisher] = sorted(publishers)
        self.column = {publisher: column for column, publisher in enumerate(self.publishers)}
        self.row = {message: row for row, message in enumerate(messages)}
        self.columns = np.array([self.column[publisher_of(message)] for message in messages], np.int64)
        self.closure: Vector = np.zeros((len(messages), len(publishers)), np.int64)
        """Per message, the highest counter per publisher among its causes and itself."""
        if messages:
            self.closure[np.arange(len(messages)), self.columns] = [message.counter for message in messages]
        self.published: Vector = np.array([topic.count.get(p, 0) for p in self.publishers], np.int64)
        self.confirmations: dict[MessageId, int] = {}
        """Per publication, the set (as bits) of confirmed subscriptions that happened before it."""

    def message(self, column: int, counter: Counter) -> MessageId:
        source, incarnation = self.publishers[column]
        return MessageId(source, incarnation, int(counter))

    def causes(self, rows: Sequence[int] | Vector) -> Vector:
        """The frontiers of these messages, themselves left out."""
        frontiers = self.closure[rows]
        frontiers[np.arange(len(rows)), self.columns[rows]] -= 1
        return frontiers

    def start(self, sigma: Subscription, bit: int) -> Vector:
        """The starting cut of a subscription: stated, zero by delivery, or implied by its confirmation."""
        stated = sigma.stated
        return np.array(
            [
                max(stated[p], 0) if p in stated else 0 if p in sigma.heard else self._implied(p, sigma, bit)
                for p in self.publishers
            ],
            np.int64,
        )

    def _implied(self, publisher: Publisher, sigma: Subscription, bit: int) -> Counter:
        published = self.topic.count.get(publisher, 0)
        if sigma.confirmed is None or not published:
            return NEVER

        def knows(counter: int) -> bool:
            return bool(self.confirmations[MessageId(*publisher, counter)] & bit)

        first = bisect_left(range(1, published + 1), True, key=knows)
        return NEVER if first == published else first


def _named_messages(topic: TopicHistory) -> list[MessageId]:
    """Published, delivered, declared missing or claimed as a dependency, each once, in an order of no meaning."""
    names = dict.fromkeys(topic.published)
    names |= dict.fromkeys(message for message, _ in topic.deliveries)
    for sigma in topic.subscriptions:
        names |= dict.fromkeys(map(message_of, sigma.gaps))
    for row in topic.published.values():
        if row.deps:
            names |= dict.fromkeys(row.deps)
    return list(names)


class _Cursor:
    """Where the replay of one process stands, and what it knows there."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.place = 0
        self.confirmations = 0
        self.known: dict[Topic, Vector] = {}
        self.heard: defaultdict[Topic, list[int]] = defaultdict(list)
        """Rows of what it delivered since its last publication on the topic."""


def rebuild(
    processes: Iterable[list[Step]], topics: dict[Topic, TopicHistory], bits: dict[Subscription, int]
) -> tuple[dict[Topic, TopicCausality], list[Violation]]:
    """Frontiers for all topics, or the rows (a violation of K0 each) that wait for one another in a circle."""
    causality = {name: TopicCausality(topic) for name, topic in topics.items()}
    confirming = {
        (sigma.log.node, sigma.log.incarnation, sigma.confirmed.seq): bit
        for sigma, bit in bits.items()
        if sigma.confirmed is not None
    }
    cursors = [_Cursor(steps) for steps in processes]
    ready = deque(cursors)
    waiting: defaultdict[tuple[Topic, MessageId], list[_Cursor]] = defaultdict(list)
    while ready:
        cursor = ready.popleft()
        for topic, message in _advance(cursor, causality, confirming, waiting):
            ready.extend(waiting.pop((topic, message), ()))
    stuck = [cursor for held in waiting.values() for cursor in held]
    return causality, [_circle(row, circle, topics) for circle in _circles(stuck) for row in circle]


def _advance(
    cursor: _Cursor,
    causality: dict[Topic, TopicCausality],
    confirming: dict[tuple[int, int, int], int],
    waiting: defaultdict[tuple[Topic, MessageId], list[_Cursor]],
) -> list[tuple[Topic, MessageId]]:
    """Replay a log until it ends or delivers something whose publication was not replayed yet; what it published."""
    published: list[tuple[Topic, MessageId]] = []
    steps = cursor.steps
    for place in range(cursor.place, len(steps)):
        row, topic, message = steps[place]
        if message is None:
            cursor.confirmations |= confirming.get((row.node, row.incarnation, row.seq), 0)
        elif row.kind == Kind.PUBLISH:
            _publish(cursor, message, causality[topic])
            published.append((topic, message))
        elif not _hear(cursor, message, causality[topic]):
            cursor.place = place
            waiting[topic, message].append(cursor)
            break
    return published


def _hear(cursor: _Cursor, message: MessageId, causality: TopicCausality) -> bool:
    """Take in a delivered message; False when its publication was not replayed yet."""
    confirmations = causality.confirmations.get(message)
    if confirmations is not None:
        cursor.confirmations |= confirmations
    elif message in causality.topic.published:
        return False
    cursor.heard[causality.topic.topic].append(causality.row[message])
    return True


def _publish(cursor: _Cursor, message: MessageId, causality: TopicCausality) -> None:
    topic = causality.topic.topic
    closure = causality.closure[causality.row[message]]
    known = cursor.known.get(topic)
    if known is not None:
        np.maximum(closure, known, out=closure)
    heard = cursor.heard.pop(topic, None)
    if heard:
        np.maximum(closure, causality.closure[heard].max(axis=0), out=closure)
    cursor.known[topic] = closure
    causality.confirmations[message] = cursor.confirmations


def _circles(stuck: list[_Cursor]) -> list[list[Event]]:
    """Rows that wait for one another. Each waits for one process, so that its way ends in a circle: those on the way to
    it are bystanders, and not reported."""
    rows = {number: cursor.steps[cursor.place][0] for number, cursor in enumerate(stuck)}
    process = {(row.node, row.incarnation): number for number, one in enumerate(stuck) for row, _, _ in one.steps}
    circles, seen = [], set[int]()
    for start in sorted(rows, key=lambda number: (rows[number].node, rows[number].incarnation)):
        way: dict[int, Event] = {}
        one = start
        while one not in seen:
            seen.add(one)
            way[one] = rows[one]
            one = process[publisher_of(message_of(rows[one]))]
        if one in way:
            numbers = list(way)
            circles.append([way[number] for number in numbers[numbers.index(one) :]])
    return circles


def _circle(row: Event, circle: list[Event], topics: dict[Topic, TopicHistory]) -> Violation:
    steps = []
    for one, before in zip(circle, circle[-1:] + circle[:-1], strict=True):
        needed = topics[before.topic or ""].published[message_of(before)]
        waits = f"{one.node}.{one.incarnation} delivers {tuple(message_of(one))} in row {one.seq}"
        steps.append(f"{waits} and publishes {tuple(message_of(before))} in row {needed.seq}")
    shown = "; ".join(steps[:MOST_STEPS]) + (f"; and {len(steps) - MOST_STEPS} more" if len(steps) > MOST_STEPS else "")
    return Violation(
        "K0",
        row.node,
        row.incarnation,
        row.seq,
        f"happened-before runs in a circle: {shown}",
        topic=row.topic,
        message=message_of(row),
    )
