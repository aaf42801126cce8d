"""Ranges of offsets, a bounded piece at a time, for programs that read logs wholesale.

The reader asks for the next piece when it wants one, so that nothing piles up anywhere. A piece fits into a frame, and
its batches are the log's own: the node rearranges nothing, and needs no library for tables. Messages are as they
travelled: what an application put around its content is opened by the application's side.
"""

from collections.abc import Iterator
from typing import NamedTuple

from cubecast.errors import BadInput, DamagedLog, Forgotten
from cubecast.ids import Counter, Incarnation, NodeId, Topic
from cubecast.net.log.reading import History
from cubecast.net.log.record import Record
from cubecast.net.log.since import PublisherCut, from_cut, oldest_known
from cubecast.net.pieces import MESSAGE_OVERHEAD

PIECE = 512 << 10
"""Bytes of messages in a piece, unless one alone is larger."""

TOPICS_AT_ONCE = 2000
"""Topics in one answer."""


class TopicLog(NamedTuple):
    """What a node's log has of a topic."""

    topic: Topic
    first: int
    """The first offset that is kept."""
    last: int
    """The last one; the smaller one when nothing is kept."""
    durable: int
    """The last one on the disk. Those behind it may go with a killed process, and be given to other messages."""
    log_id: str
    """The log's random name: offsets count in the log of this name only."""


class LoggedBatch(NamedTuple):
    """Messages of one publisher with consecutive counters, at consecutive offsets."""

    offset: int
    time: float
    source: NodeId
    incarnation: Incarnation
    counter: Counter
    sealed: list[bytes]


class LogPiece(NamedTuple):
    following: int
    """The offset after the last one in it."""
    stop: int
    """The offset at which the range ends."""
    batches: list[LoggedBatch]
    """None when nothing is left."""


async def read_piece(history: History, topic: Topic, start: int | None, stop: int | None) -> LogPiece:
    """From `start` on, before `stop`. Forgotten or DamagedLog for offsets that cannot be had, never silence.

    Without limits from the first offset kept, and up to the last one of this moment.
    """
    first, last = history.bounds(topic)
    start = first if start is None else start
    stop = last + 1 if stop is None else stop
    if start < first:
        raise Forgotten(f"{topic}: offset {start} is not kept any more; the first one is {first}")
    if stop > last + 1:
        raise BadInput(f"{topic}: the log ends with offset {last}; there is no range up to {stop}")
    if start >= stop:
        return LogPiece(start, stop, [])
    batches = list(_bounded(await _records(history, topic, start), stop))
    return LogPiece(batches[-1].offset + len(batches[-1].sealed), stop, batches)


async def _records(history: History, topic: Topic, start: int) -> list[Record]:
    try:
        return await history.read(topic, start, PIECE)
    except DamagedLog:
        if history.mend is None or not await history.mend(topic):
            raise
        return await history.read(topic, start, PIECE)


def list_topics(history: History, after: Topic) -> list[TopicLog]:
    """The next ones in the order of their names."""
    topics = sorted(topic for topic in history.store.topics() if topic > after)
    store = history.store
    return [
        TopicLog(topic, *history.bounds(topic), store.durable_end(topic), store.identity)
        for topic in topics[:TOPICS_AT_ONCE]
    ]


async def cut_up_to(history: History, topic: Topic, offset: int) -> PublisherCut:
    """What the log had of the topic when this offset was its last."""
    last = history.bounds(topic)[1]
    if not 0 <= offset <= last:
        raise BadInput(f"{topic}: the log ends with offset {last}; there is no cut at {offset}")
    cut = await history.store.cut_at(topic, offset)
    return {(topic, source, incarnation): counter for source, (incarnation, counter) in cut.items()}


async def place_behind(history: History, topic: Topic, cut: PublisherCut) -> int:
    """The first offset of a message that is not in the cut; behind it, some may be."""
    return await history.store.offset_after_cut(topic, oldest_known(topic, from_cut(cut).known))


def _bounded(records: list[Record], stop: int) -> Iterator[LoggedBatch]:
    """The first messages that fit into a piece, at least one."""
    left = PIECE
    for record in records:
        sealed: list[bytes] = []
        for payload in record.payloads[: max(0, stop - record.offset)]:
            left -= len(payload) + MESSAGE_OVERHEAD
            if left < 0 and (sealed or record is not records[0]):
                break
            sealed.append(payload)
        if sealed:
            yield LoggedBatch(record.offset, record.at, *record.first, sealed)
        if len(sealed) < len(record.payloads):
            return
