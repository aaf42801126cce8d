"""What a subscriber has of the log: tells repetitions, and what is missing in between."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from cubecast.ids import Counter, Incarnation, NodeId, Topic
from cubecast.log.record import Record
from cubecast.log.record import Run as MessageRun
from cubecast.net.port.port import GapNotice, Run
from cubecast.net.port.since import PublisherCut

Publisher: TypeAlias = tuple[NodeId, Incarnation]

MOST_TOPICS = 65_536
"""Beyond, the topic that was heard of first is forgotten: its next hole may go unseen, and nothing else."""


class Step(NamedTuple):
    """One record, as far as it is new, and what is missing before it."""

    gaps: Sequence[GapNotice]
    news: Record | None


class _TopicProgress:
    __slots__ = ("floor", "last", "lives", "next_offset", "strangers", "unplaced", "unsure")

    def __init__(self) -> None:
        self.last: dict[Publisher, Counter] = {}
        self.lives: dict[NodeId, Incarnation] = {}
        """Of a cut that was given: who is known under one incarnation is known under all before it."""
        self.next_offset: int | None = None
        self.unsure: set[Publisher] = set()
        """Whose next hole may be part of one that was announced by offset."""
        self.floor = 0
        """Below this offset publishers that were never heard of may have caused what is known."""
        self.strangers: set[Publisher] = set()
        self.unplaced: dict[Publisher, tuple[Counter, Counter]] = {}
        """What of theirs was left out, and not yet announced."""


class Progress:
    """By topic: the next offset, and the last counter of each publisher."""

    def __init__(self, known: PublisherCut | None = None) -> None:
        """With `known` all else is wanted: publishers it does not name begin with their first message."""
        self._topics: dict[Topic, _TopicProgress] = {}
        self._unheard = None if known is None else 0
        for (topic, source, incarnation), counter in (known or {}).items():
            one = self._topic(topic)
            one.last[source, incarnation] = counter
            one.lives[source] = max(incarnation, one.lives.get(source, incarnation))

    def _topic(self, topic: Topic) -> _TopicProgress:
        one = self._topics.get(topic)
        if one is None:
            if len(self._topics) >= MOST_TOPICS:
                del self._topics[next(iter(self._topics))]
            one = self._topics[topic] = _TopicProgress()
        return one

    def expect(self, topic: Topic, offset: int) -> None:
        """The next message of the topic is this one."""
        self._topic(topic).next_offset = offset

    def is_known(self, record: Record) -> bool:
        """Is the first message of it in the cut that was given?"""
        topic = self._topics.get(record.topic)
        source, incarnation, counter = record.first
        if topic is None:
            return False
        return counter <= topic.last.get((source, incarnation), 0) or incarnation < topic.lives.get(source, 0)

    def leave_out(self, topic: Topic, below: int) -> None:
        """What publishers that are not in the cut said below this offset is announced, and not delivered."""
        self._topic(topic).floor = below

    def left_out(self, name: Topic) -> Sequence[GapNotice]:
        """To be announced where the subscriber gets on; once."""
        topic = self._topics.get(name)
        if topic is None or not topic.unplaced:
            return ()
        runs = tuple(Run(*publisher, *run) for publisher, run in topic.unplaced.items())
        topic.unplaced.clear()
        reason = "it cannot be told whether they came before what is known already"
        return (GapNotice(name, (), reason, runs, sum(last - first + 1 for _, _, first, last in runs)),)

    def _is_left_out(self, topic: _TopicProgress, record: Record) -> bool:
        if record.offset >= topic.floor:
            return False
        source, incarnation, counter = record.first
        publisher, last = (source, incarnation), counter + len(record.payloads) - 1
        if publisher not in topic.strangers and (publisher in topic.last or source in topic.lives):
            return False
        topic.strangers.add(publisher)
        topic.unplaced[publisher] = (topic.unplaced.get(publisher, (counter, last))[0], last)
        topic.last[publisher] = last
        return True

    def has(self, name: Topic, runs: Sequence[MessageRun]) -> bool:
        """Does the subscriber know all these messages? No, when they are not known by name."""
        topic = self._topics.get(name)
        if topic is None or not runs:
            return False
        return all(
            counter + many - 1 <= topic.last.get((source, incarnation), 0) or incarnation < topic.lives.get(source, 0)
            for (source, incarnation, counter), many in runs
        )

    def skip(self, name: Topic, first: int, last: int) -> GapNotice:
        """These offsets cannot be had; what follows comes behind them."""
        topic = self._topic(name)
        topic.next_offset = last + 1
        topic.unsure.update(topic.last)
        return _offsets_gone(name, first, last)

    def step(self, record: Record) -> Step:
        topic = self._topics.get(record.topic) or self._topic(record.topic)
        source, incarnation, counter = record.first
        publisher = source, incarnation
        expected, topic.next_offset = topic.next_offset, record.last + 1
        if topic.floor and self._is_left_out(topic, record):
            return Step((), None)
        gaps: list[GapNotice] = []
        if expected is not None and record.offset > expected:
            gaps.append(_offsets_gone(record.topic, expected, record.offset - 1))
            topic.unsure.update(topic.last)
        last = topic.last.get(publisher)
        if last is None:
            if incarnation < topic.lives.get(source, 0):
                return Step(gaps, None)
            last = self._unheard
        after = counter + len(record.payloads)
        news: Record | None = record
        if last is not None and last != counter - 1:
            if last >= counter:
                news = record.since(record.offset + last - counter + 1) if last + 1 < after else None
            elif publisher not in topic.unsure:
                gaps.append(_hole(record.topic, publisher, last + 1, counter - 1))
        if topic.unsure:
            topic.unsure.discard(publisher)
        if news is not None:
            topic.last[publisher] = after - 1
            if topic.unplaced:
                gaps[:0] = self.left_out(record.topic)
        return Step(gaps, news)

    @property
    def topics(self) -> list[Topic]:
        return list(self._topics)

    def announced(self, notice: GapNotice) -> None:
        """Another member said that these are missing: they are no news any more."""
        for source, incarnation, counter in notice.missing:
            last = self._topic(notice.topic).last
            last[source, incarnation] = max(counter, last.get((source, incarnation), 0))
        for source, incarnation, _, counter in notice.runs:
            last = self._topic(notice.topic).last
            last[source, incarnation] = max(counter, last.get((source, incarnation), 0))


def _offsets_gone(topic: Topic, first: int, last: int) -> GapNotice:
    reason = f"offsets {first} to {last} of {topic} are damaged, or not in the log any more"
    return GapNotice(topic, (), reason, count=last - first + 1, offsets=(first, last))


def _hole(topic: Topic, publisher: Publisher, first: int, last: int) -> GapNotice:
    source, incarnation = publisher
    reason = f"the log does not have them: node {source} published them while this node did not listen"
    return GapNotice(topic, (), reason, count=last - first + 1, runs=(Run(source, incarnation, first, last),))
