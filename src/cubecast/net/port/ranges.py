"""Ranges of offsets, a bounded piece at a time, for programs that read logs wholesale.

The reader asks for the next piece when it wants one, so that nothing piles up anywhere. A piece fits into a frame, and
its batches are the log's own: the node rearranges nothing, and needs no library for tables. Messages are as they
travelled: what an application put around its content is opened by the application's side. Pieces are put together in
the thread that reads the log, mostly from messages that stay packed: the event loop gets bytes to send.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from cubecast.errors import BadInput, DamagedLog, Forgotten
from cubecast.headers import attributes_of
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.log.history import History
from cubecast.log.record import Cut, Entry, encode_block, list_in, messages_in
from cubecast.net.port.chunks import MESSAGE_OVERHEAD, runs
from cubecast.net.port.port import PublisherCut, from_cut, oldest_known
from cubecast.protocol.filters import parse

NAME_BYTES = 4
"""What a message counts in a piece that has no messages, only their names."""
_NO_MESSAGE = b"\xc4\x00"
"""An empty one, packed."""

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
    """None when nothing is left, or nothing of it was wanted."""


class Wanted(NamedTuple):
    """What of a range a reader wants."""

    behind: Sequence[tuple[NodeId, Incarnation, Counter]] = ()
    """Not what is up to here in its publisher's order."""
    upto: Sequence[tuple[NodeId, Incarnation, Counter]] | None = None
    """Only what is up to here, where this is given."""
    content: bool = True
    """With the messages themselves? Else they are empty, and the segments are not read, unless there is a filter."""
    where: str = ""
    """A filter over headers, where there is one."""


ALL = Wanted()


async def read_piece(
    history: History, topic: Topic, start: int | None, stop: int | None, wanted: Wanted = ALL
) -> bytes:
    """From `start` on, before `stop`: a packed `LogPiece`. Forgotten or DamagedLog for offsets that cannot be had.

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
        return encode_block((start, stop, ()))
    if wanted.where:
        matching(wanted.where)
    entries = await _entries(history, topic, start, wanted.content or bool(wanted.where))
    return await history.store.in_reader(lambda: _pack(entries, start, stop, wanted))


async def _entries(history: History, topic: Topic, start: int, content: bool) -> list[Entry]:
    try:
        return await history.entries(topic, start, PIECE, content)
    except DamagedLog:
        if not await history.repair(topic):
            raise
        return await history.entries(topic, start, PIECE, content)


decode_piece = msgspec.msgpack.Decoder(LogPiece).decode


def _pack(entries: list[Entry], start: int, stop: int, wanted: Wanted) -> bytes:
    """The first messages that fit into a piece, at least one. Batches that go as a whole are not opened."""
    behind, upto = _newest(wanted.behind), None if wanted.upto is None else _newest(wanted.upto)
    batches: list[tuple[Any, ...]] = []
    left, following = PIECE, start
    for entry in entries:
        begin, end = max(0, start - entry.offset), min(entry.many, stop - entry.offset)
        if begin >= end or left <= 0:
            break
        low, high = _window(entry.first, entry.many, behind, upto)
        following = entry.offset + end
        for one, other in _runs(entry, max(begin, low), min(end, high), wanted.where):
            sealed, taken = _sealed(entry, one, other, left if batches else PIECE, wanted.content)
            left -= len(sealed) + (MESSAGE_OVERHEAD if wanted.content else NAME_BYTES) * taken
            source, incarnation, counter = entry.first
            batches.append((entry.offset + one, entry.at, source, incarnation, counter + one, msgspec.Raw(sealed)))
            if one + taken < other or left <= 0:
                following = min(following, entry.offset + one + taken)
                break
        if following < entry.offset + end:
            break
    return encode_block((following, stop, batches))


@lru_cache(64)
def matching(where: str) -> Callable[[Topic, bytes], bool]:
    """BadInput when it is no filter."""
    matches = parse(where).matches
    return lambda topic, sealed: matches(attributes_of(topic, sealed))


def _runs(entry: Entry, begin: int, end: int, where: str) -> Iterator[tuple[int, int]]:
    """The entry's messages from one to another that are wanted, as pieces without holes."""
    if begin >= end or not where:
        return iter([(begin, end)] if begin < end else [])
    matches, messages = matching(where), messages_in(entry.block, entry.element)
    return runs([place for place in range(begin, end) if matches(entry.topic, messages[place])])


def _sealed(entry: Entry, begin: int, end: int, left: int, content: bool) -> tuple[Any, int]:
    """Of the entry's messages from one to another those that fit, at least one, packed; and how many."""
    if not content:
        many = max(1, min(end - begin, left // (NAME_BYTES + len(_NO_MESSAGE))))
        return _array(many) + _NO_MESSAGE * many, many
    if begin == 0 and end == entry.many and len(entry.block) + MESSAGE_OVERHEAD * entry.many <= left:
        return list_in(entry.block, entry.element), entry.many
    taken: list[bytes] = []
    for payload in messages_in(entry.block, entry.element)[begin:end]:
        left -= len(payload) + MESSAGE_OVERHEAD
        if left < 0 and taken:
            break
        taken.append(payload)
    return encode_block(taken), len(taken)


def _array(many: int) -> bytes:
    """How MessagePack begins a list of so many."""
    return bytes([0xDD]) + many.to_bytes(4, "big")


def _newest(places: Sequence[tuple[NodeId, Incarnation, Counter]]) -> Cut:
    newest: Cut = {}
    for source, incarnation, counter in places:
        newest[source] = max(newest.get(source, (-1, 0)), (incarnation, counter))
    return newest


def _window(first: MessageId, many: int, behind: Cut, upto: Cut | None) -> tuple[int, int]:
    """Which of these messages are wanted: from one on, before another."""
    source, incarnation, counter = first
    low, high = 0, many
    if source in behind:
        known = behind[source]
        low = many if incarnation < known[0] else known[1] - counter + 1 if incarnation == known[0] else 0
    if upto is not None:
        most = upto.get(source, (-1, 0))
        high = 0 if incarnation > most[0] else most[1] - counter + 1 if incarnation == most[0] else many
    return min(max(0, low), many), min(max(0, high), many)


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


async def place_at(history: History, topic: Topic, at: float) -> int:
    """The first offset of a message delivered at that time or later; one past the last when there is none."""
    return await history.store.offset_at(topic, at)


async def place_before(history: History, topic: Topic, cut: PublisherCut) -> int:
    """The first offset behind all messages of the log that are in the cut; before it, others may be."""
    places = [(source, incarnation, counter) for (one, source, incarnation), counter in cut.items() if one == topic]
    return 1 + await history.store.offset_before_cut(topic, _newest(places))
