"""Ranges of offsets as Arrow record batches, a bounded piece at a time, for programs that read logs wholesale.

Whoever reads asks for the next piece when it wants one, so that nothing piles up anywhere. A piece is an Arrow stream
of its own with one batch; it fits into a frame. Messages are as they travelled: what an application put around its
content is opened by the application's side.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from cubecast.errors import BadInput, DamagedLog, Forgotten
from cubecast.ids import Counter, Incarnation, NodeId, Topic
from cubecast.net.log.reading import History
from cubecast.net.log.record import Record
from cubecast.net.pieces import MESSAGE_OVERHEAD

if TYPE_CHECKING:
    import pyarrow as pa

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


class LogPiece(NamedTuple):
    following: int
    """The offset after the last one in it."""
    stop: int
    """The offset at which the range ends."""
    data: bytes
    """An Arrow stream; empty when nothing is left."""


class Row(NamedTuple):
    offset: int
    time: float
    source: NodeId
    incarnation: Incarnation
    counter: Counter
    sealed: bytes


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
        return LogPiece(start, stop, b"")
    rows = list(_bounded(await _records(history, topic, start), stop))
    return LogPiece(rows[-1].offset + 1, stop, _encoded(topic, rows))


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
    return [TopicLog(topic, *history.bounds(topic)) for topic in topics[:TOPICS_AT_ONCE]]


def _bounded(records: list[Record], stop: int) -> Iterator[Row]:
    left = PIECE
    for record in records:
        source, incarnation, counter = record.first
        for place, payload in enumerate(record.payloads):
            left -= len(payload) + MESSAGE_OVERHEAD
            if record.offset + place >= stop or (left < 0 and place + record.offset > records[0].offset):
                return
            yield Row(record.offset + place, record.at, source, incarnation, counter + place, payload)


def log_schema() -> "pa.Schema":
    import pyarrow as pa  # here, because most nodes and clients never need it

    return pa.schema(
        [
            ("topic", pa.string()),
            ("offset", pa.int64()),
            ("time", pa.float64()),
            ("source", pa.int32()),
            ("incarnation", pa.int32()),
            ("counter", pa.int64()),
            ("sealed", pa.binary()),
        ]
    )


def _encoded(topic: Topic, rows: list[Row]) -> bytes:
    import pyarrow as pa

    schema = log_schema()
    columns = [[topic] * len(rows), *map(list, zip(*rows, strict=True))]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return bytes(sink.getvalue())
