"""From where a subscriber wants to begin to a place in the log."""

from cubecast.errors import BadInput
from cubecast.ids import Topic
from cubecast.log.reading import History
from cubecast.net.node.durable.cursors import Cursor, PatternCursor, TopicCursor, readable
from cubecast.net.node.durable.progress import Progress
from cubecast.net.node.durable.replaying import CHUNK, Replay
from cubecast.net.port.port import Sink
from cubecast.net.port.since import FromBeginning, FromCut, FromNow, FromOffset, FromTime, Since, oldest_known
from cubecast.patterns import is_pattern, matcher


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
