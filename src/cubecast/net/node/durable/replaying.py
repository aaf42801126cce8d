"""Subscriptions that begin in the log.

What a node delivers is appended to its log and handed to its subscribers in the same step, so the log and the live
deliveries are one sequence. A subscription with a beginning is a place in that sequence. While it is behind, it reads
the log, a bounded piece per turn of the event loop, and lets live deliveries pass: they are in the log already. When a
look at the log finds nothing more, it is live from that very step on. When its reader asks for a pause it stays where
it is, holding nothing and nobody back, and reads on from there later. Follows decision 0021.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from cubecast.errors import BadInput, CubecastError
from cubecast.ids import MessageId, Topic
from cubecast.log.history import History
from cubecast.log.record import Record
from cubecast.net.node.durable.cursors import Cursor, PatternCursor, Progress, Skipped, TopicCursor, readable
from cubecast.net.port.port import (
    FromBeginning,
    FromCut,
    FromNow,
    FromOffset,
    FromTime,
    GapNotice,
    Logged,
    PublisherCut,
    Since,
    Sink,
    oldest_known,
)
from cubecast.patterns import is_pattern, matcher

log = logging.getLogger(__name__)

CHUNK = 256 << 10
"""Bytes read in one turn: some milliseconds of work."""
RECORDS_AT_ONCE = 500
MOST_NOTICES = 1024


class Replay:
    """A `Sink` between a node and a subscriber."""

    def __init__(self, sink: Sink, cursor: Cursor, progress: Progress) -> None:
        self._sink, self._cursor, self._progress = sink, cursor, progress
        self._is_live = self._is_paused = self._is_over = False
        self._task: asyncio.Task[None] | None = None
        self._notices: deque[GapNotice] = deque()
        self._passed_over: dict[Topic, Skipped] = {}
        """Not yet told: it may go on."""

    # The reader's side

    def start(self) -> None:
        if self._task is None and not self._is_over:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="replay")

    def pause(self) -> None:
        self._is_paused = True
        self._is_live = False

    def resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self.start()

    # The node's side

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        """Already in the log, and the last thing there: who is behind comes to it later."""
        if self._is_live and logged is not None:
            record = Record(topic, first, list(payloads), *logged)
            self._cursor.passed(record)
            self._hand_over(record)

    def on_ready(self) -> None:
        self._sink.on_ready()

    def on_live(self, known: PublisherCut) -> None:
        """Said by replays, not to them."""

    def on_gap(self, gap: GapNotice) -> None:
        """Of gaps with names those who are behind learn where counters jump in the log; the others are kept."""
        if self._is_live:
            self._progress.announced(gap)
            self._sink.on_gap(gap)
        elif not gap.missing:
            if len(self._notices) >= MOST_NOTICES:
                self._notices.popleft()  # the others say the same: that something may be missing
            self._notices.append(gap)

    def on_end(self, error: CubecastError | None) -> None:
        self._is_over = True
        self._is_live = False
        self._sink.on_end(error)

    # Catching up

    async def _run(self) -> None:
        try:
            await self._cursor.prepare()
            while self._is_reading and not self._is_live:
                await self._take(await self._cursor.read(CHUNK))
                if not self._is_live:
                    await asyncio.sleep(0)  # others want to do something, too
        except CubecastError as error:
            if not self._is_over:
                self.on_end(error)
        except Exception as error:  # better an error than silence, whatever the mistake is
            if not self._is_over:
                log.exception("a replay failed")
                self.on_end(CubecastError(f"the log could not be read: {error}"))
        finally:
            self._task = None

    @property
    def _is_reading(self) -> bool:
        return not self._is_paused and not self._is_over

    async def _take(self, found: list[Record]) -> None:
        """Hand over what was read; when nothing has come behind it, the subscription is live."""
        for skipped in self._cursor.skipped():
            self._pass_over(skipped)
        if found or (self._is_reading and self._cursor.is_at_end):
            self._tell_passed_over()
        for number, record in enumerate(found, 1):
            if not number % RECORDS_AT_ONCE:
                await asyncio.sleep(0)  # of ten thousand topics, one record each may be many
            if not self._is_reading:
                return
            self._cursor.passed(record)
            self._hand_over(record)
        while self._is_reading and self._cursor.is_at_end:
            if not self._notices:
                self._tell_what_was_left_out()
                self._is_live = True
                self._sink.on_live(self._cursor.known())
                return
            self._sink.on_gap(self._notices.popleft())

    def _pass_over(self, skipped: Skipped) -> None:
        """Neighbours are told of together."""
        before = self._passed_over.get(skipped.topic)
        if before is not None and before.last + 1 == skipped.first:
            skipped = skipped._replace(first=before.first, ids=())
        elif before is not None:
            self._tell_passed_over()
        if not self._progress.has(skipped.topic, skipped.ids):
            self._passed_over[skipped.topic] = skipped

    def _tell_passed_over(self) -> None:
        passed_over, self._passed_over = self._passed_over, {}
        for topic, first, last, _ in passed_over.values():
            self._sink.on_gap(self._progress.skip(topic, first, last))

    def _tell_what_was_left_out(self) -> None:
        for topic in self._progress.topics:
            for gap in self._progress.left_out(topic):
                self._sink.on_gap(gap)

    def _hand_over(self, record: Record) -> None:
        gaps, news = self._progress.step(record)
        for gap in gaps:
            self._sink.on_gap(gap)
        if news is not None:
            self._sink.on_batch(news.topic, news.first, news.payloads, Logged(news.offset, news.at))


def open_replay(history: History, pattern: str, sink: Sink, since: Since) -> Replay:
    """BadInput for a place that cannot be."""
    progress = Progress(since.cut if isinstance(since, FromCut) else None)
    if isinstance(since, FromOffset):
        _check(history, pattern, since.offset)
    beginning = Beginning(history, since, progress)
    cursor: Cursor
    if is_pattern(pattern):
        cursor = PatternCursor(history, matcher(pattern), beginning)
    else:
        cursor = TopicCursor(history, pattern, beginning)
    return Replay(sink, cursor, progress)


def _check(history: History, topic: str, offset: int) -> None:
    if is_pattern(topic):
        raise BadInput(f"an offset belongs to one topic, and {topic} may select many; begin at a time or a cut")
    last = history.bounds(topic)[1]
    if offset > last + 1:
        raise BadInput(
            f"the log of {topic} at this node ends with offset {last}, so {offset} is none of its offsets; "
            "they count for the node that gave them only"
        )


class Beginning:
    """The offset where a topic begins for the subscriber."""

    def __init__(self, history: History, since: Since, progress: Progress) -> None:
        self._history, self._since, self._progress = history, since, progress
        self._ends = {topic: history.bounds(topic)[1] for topic in history.store.topics()}
        """When the question was asked: `now` is then, and not when the answer is looked for."""

    async def __call__(self, topic: Topic) -> int:
        offset = await self._offset(topic)
        if not isinstance(self._since, FromCut):  # behind a cut what is missing may be known already
            self._progress.expect(topic, offset)
        return offset

    def of_new(self, topic: Topic) -> int:
        """Of one that began after the subscription did."""
        self._progress.expect(topic, 1)
        return 1

    async def _offset(self, topic: Topic) -> int:
        first, _ = self._history.bounds(topic)
        match self._since:
            case FromBeginning():
                return first
            case FromNow():
                return self._ends.get(topic, 0) + 1
            case FromTime(time):
                return await self._history.store.offset_at(topic, time)
            case FromOffset(offset):
                return offset
            case FromCut(_, _, is_causal):
                start = await self._history.store.offset_after_cut(topic, oldest_known(topic, self._since.known))
                if is_causal:
                    self._progress.leave_out(topic, await self._behind_known(topic, start))
                return start

    async def _behind_known(self, topic: Topic, offset: int) -> int:
        """The offset after the last message that is in the cut: whatever comes later caused nothing of it."""
        floor, (_, end) = 0, self._history.bounds(topic)
        while offset <= end:
            found, offset = await readable(self._history, topic, offset, CHUNK)
            for record in found:
                if self._progress.is_known(record):
                    floor = record.last + 1
            offset = found[-1].last + 1 if found else offset
        return floor
