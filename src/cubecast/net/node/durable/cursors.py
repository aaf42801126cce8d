"""How far a subscription that began in the log is: a place in the log that moves on, in one topic or through all that a
pattern selects, in the order of delivery; and what the subscriber has of it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import NamedTuple, Protocol, TypeAlias

from cubecast.errors import DamagedLog, Forgotten
from cubecast.ids import Counter, Incarnation, NodeId, Topic
from cubecast.log.history import History
from cubecast.log.record import Record
from cubecast.log.record import Run as MessageRun
from cubecast.net.port.port import GapNotice, PublisherCut, Run

TOPICS_AT_ONCE = 500
"""Topics that are looked up without a break."""


class Skipped(NamedTuple):
    """Offsets that a cursor passed because the log cannot give them."""

    topic: Topic
    first: int
    last: int
    ids: tuple[MessageRun, ...] = ()
    """The messages there, where that is known."""


class Start(Protocol):
    """The offset at which a topic begins for a subscription."""

    async def __call__(self, topic: Topic) -> int: ...
    def of_new(self, topic: Topic) -> int:
        """Of one that is new since the subscription was opened."""


class Cursor(Protocol):
    async def prepare(self) -> None:
        """Find the place, once."""

    async def read(self, most_bytes: int) -> list[Record]:
        """What comes next; it may be nothing although the end is not reached."""

    def passed(self, record: Record) -> None:
        """The subscriber has this one, and what came before it."""

    def skipped(self) -> list[Skipped]:
        """What had to be passed over since this was last asked, before what is read next."""

    @property
    def is_at_end(self) -> bool:
        """The subscriber has all there is."""

    def known(self) -> PublisherCut:
        """All that is logged of what it follows."""


class TopicCursor:
    """Follows one topic by offset."""

    def __init__(self, history: History, topic: Topic, start: Start) -> None:
        self._history, self._topic, self._start = history, topic, start
        self._offset: int | None = None
        self._skipped: list[Skipped] = []

    async def prepare(self) -> None:
        if self._offset is None:
            self._offset = await self._start(self._topic)

    async def read(self, most_bytes: int) -> list[Record]:
        assert self._offset is not None
        before = self._offset
        found, self._offset = await readable(self._history, self._topic, before, most_bytes)
        self._skipped += passed_over(self._history, self._topic, before, self._offset)
        return found

    def passed(self, record: Record) -> None:
        self._offset = record.last + 1

    def skipped(self) -> list[Skipped]:
        skipped, self._skipped = self._skipped, []
        return skipped

    @property
    def is_at_end(self) -> bool:
        return self._offset is not None and self._history.is_at_end(self._topic, self._offset)

    def known(self) -> PublisherCut:
        return self._history.known([self._topic])


class PatternCursor:
    """Follows all topics of the log that a pattern selects, merged by time, which never falls."""

    def __init__(self, history: History, matches: Callable[[Topic], bool], start: Start) -> None:
        self._history, self._matches, self._start = history, matches, start
        self._offsets: dict[Topic, int] = {}
        self._ahead: dict[Topic, deque[Record]] = {}
        """Read and not handed over, at least one record of each topic that has any."""
        self._looked_at = 0
        self._is_prepared = False
        self._skipped: list[Skipped] = []

    async def prepare(self) -> None:
        """Topics that are in the log now begin where they were asked for, later ones at their beginning."""
        if not self._is_prepared:
            self._is_prepared = True
            for number, topic in enumerate(self._new_topics(), 1):
                self._offsets[topic] = await self._start(topic)
                if not number % TOPICS_AT_ONCE:
                    await asyncio.sleep(0)  # finding the start waits for nothing while no disk is asked

    def _new_topics(self) -> list[Topic]:
        topics = self._history.store.topics()
        if len(topics) == self._looked_at:
            return []
        self._looked_at = len(topics)
        return [topic for topic in topics if topic not in self._offsets and self._matches(topic)]

    def _behind(self) -> list[Topic]:
        for topic in self._new_topics():
            self._offsets[topic] = self._start.of_new(topic)
        return [topic for topic, offset in self._offsets.items() if not self._history.is_at_end(topic, offset)]

    async def read(self, most_bytes: int) -> list[Record]:
        horizon = self._history.newest_at  # what comes while the disk is asked may be missing in topics asked before
        topics = self._behind()
        most = max(1, most_bytes // max(1, len(topics)))
        for number, topic in enumerate(topics, 1):
            if not number % TOPICS_AT_ONCE:
                await asyncio.sleep(0)
            if not self._ahead.get(topic):
                before = self._offsets[topic]
                found, self._offsets[topic] = await readable(self._history, topic, before, most)
                self._skipped += passed_over(self._history, topic, before, self._offsets[topic])
                if not found:
                    return []  # forgotten meanwhile, or damaged: what comes instead may be the next of all
                self._ahead[topic] = deque(found)
        return merged(list(self._ahead.values()), horizon, self._has_more)

    def _has_more(self, record: Record) -> bool:
        return not self._history.is_at_end(record.topic, record.last + 1)

    def passed(self, record: Record) -> None:
        self._offsets[record.topic] = record.last + 1
        ahead = self._ahead.get(record.topic)
        if ahead is not None:
            while ahead and ahead[0].last <= record.last:
                ahead.popleft()
            if not ahead:
                del self._ahead[record.topic]

    def skipped(self) -> list[Skipped]:
        skipped, self._skipped = self._skipped, []
        return skipped

    @property
    def is_at_end(self) -> bool:
        return self._is_prepared and not self._behind()

    def known(self) -> PublisherCut:
        return self._history.known(list(self._offsets))


def merged(pieces: list[deque[Record]], horizon: float, has_more: Callable[[Record], bool]) -> list[Record]:
    """By time, up to the horizon, or until one of them ends that has more to come."""
    readers = [iter(piece) for piece in pieces]
    heads = [(record.at, number, record) for number, reader in enumerate(readers) for record in islice(reader, 1)]
    heapify(heads)
    result: list[Record] = []
    while heads and heads[0][0] <= horizon:
        _, number, record = heads[0]
        result.append(record)
        following = next(readers[number], None)
        if following is not None:
            heapreplace(heads, (following.at, number, following))
        elif has_more(record):
            break
        else:
            heappop(heads)
    return result


def passed_over(history: History, topic: Topic, before: int, after: int) -> list[Skipped]:
    """What lies between two places of a cursor, as damaged ranges where it is."""
    ranges = {damage.first: damage for damage in history.store.damaged(topic)} if after > before else {}
    skipped = []
    while before < after:
        damage = ranges.get(before)
        last = after - 1 if damage is None else min(damage.last, after - 1)
        ids = damage.ids if damage is not None and damage.last == last else ()
        skipped.append(Skipped(topic, before, last, ids))
        before = last + 1
    return skipped


async def readable(history: History, topic: Topic, offset: int, most_bytes: int) -> tuple[list[Record], int]:
    """What can be read from there on, and where it begins: beyond what is not kept any more, or is damaged."""
    offset = max(offset, history.bounds(topic)[0])
    try:
        return await history.read(topic, offset, most_bytes), offset
    except DamagedLog as damage:
        if await history.repair(topic):
            return [], offset
        if len(damage.args) < 3:
            raise
        return [], damage.args[2] + 1
    except Forgotten:
        return [], history.bounds(topic)[0]  # while we asked


# What a subscriber has of the log: tells repetitions, and what is missing in between.

Publisher: TypeAlias = tuple[NodeId, Incarnation]

MOST_TOPICS = 65_536
"""Beyond, the topic that was heard of first is forgotten: its next hole may go unseen, and nothing else."""


class Step(NamedTuple):
    """One record, as far as it is new, and what is missing before it."""

    gaps: Sequence[GapNotice]
    news: Record | None


class _TopicProgress:
    __slots__ = ("floor", "last", "lives", "next_offset", "unheard", "unplaced", "unsure")

    def __init__(self) -> None:
        self.last: dict[Publisher, Counter] = {}
        self.lives: dict[NodeId, Incarnation] = {}
        """Of a cut that was given: who is known under one incarnation is known under all before it."""
        self.next_offset: int | None = None
        self.unsure: set[Publisher] = set()
        """Whose next hole may be part of one that was announced by offset."""
        self.floor = 0
        """Below this offset publishers that were never heard of may have caused what is known."""
        self.unheard: set[Publisher] = set()
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
        if publisher not in topic.unheard and (publisher in topic.last or source in topic.lives):
            return False
        topic.unheard.add(publisher)
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
