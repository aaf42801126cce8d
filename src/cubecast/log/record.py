"""What a log keeps: batches as they were delivered, and the checked bytes each becomes.

A frame is a fixed opening, a head and a block of messages. The opening holds the lengths of both and the head's
checksum, which covers the lengths too; the head names the messages and holds the block's checksum. So no part can
change, move or be exchanged without one of the two telling.

A block is a list of messages in MessagePack, or a packet as it travelled, which has such a list in it: a byte, then an
array with the list as one of its elements. The head says which; nothing else of the packet counts here.
"""

from collections.abc import Sequence
from itertools import chain, repeat
from operator import concat
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is one
from typing import NamedTuple

import msgspec

from cubecast.checksums import checksum
from cubecast.ids import MessageId, NodeId, Topic

RECORD_OVERHEAD = 200
"""Bytes charged per batch in memory besides its content."""
MAGIC = b"\xc1LOG"
OPENING = Struct("<4sIIQ")
make_tuple = tuple.__new__
"""Of a named kind, in half of the time that calling the kind takes."""
encode_block = msgspec.msgpack.Encoder().encode
_decode_head = msgspec.msgpack.Decoder(tuple[Topic, int, int, MessageId, float, int, int]).decode
_decode_block = msgspec.msgpack.Decoder(list[bytes]).decode
_decode_packet = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class Logged(NamedTuple):
    """Where a batch stands in the log of its node."""

    offset: int
    """Of the first message; those of a topic have no holes, and mean nothing at another node."""
    at: float
    """When the node delivered it, in seconds since 1970 by its clock."""


class Record(NamedTuple):
    """Messages of one publisher with consecutive counters, at consecutive offsets of their topic."""

    topic: Topic
    first: MessageId
    payloads: list[bytes]
    offset: int
    """Of the first one; a topic's offsets begin at 1 and have no gaps."""
    at: float
    """When they were delivered here, by the wall clock made to never run backwards."""

    @property
    def last(self) -> int:
        """The offset of the last one."""
        return self.offset + len(self.payloads) - 1

    @property
    def many(self) -> int:
        return len(self.payloads)

    def since(self, offset: int) -> "Record":
        """The part that begins with this offset."""
        skipped = offset - self.offset
        if skipped <= 0:
            return self
        first = self.first._replace(counter=self.first.counter + skipped)
        return Record(self.topic, first, self.payloads[skipped:], offset, self.at)


class Packed(NamedTuple):
    """Messages as bytes."""

    many: int
    block: bytes
    checksum: int
    element: int = 0
    """Of the packet that the block is, the list of messages; 0 when the block is nothing but the list."""


def pack(payloads: Sequence[bytes]) -> Packed:
    block = encode_block(payloads)
    return Packed(len(payloads), block, checksum(block))


class Entry(NamedTuple):
    """A record on its way to the disk. Its messages stay packed: that takes less memory, and says how much."""

    topic: Topic
    offset: int
    many: int
    first: MessageId
    at: float
    block: bytes
    checksum: int
    element: int

    @property
    def last(self) -> int:
        return self.offset + self.many - 1

    def record(self) -> Record:
        return Record(self.topic, self.first, messages_in(self.block, self.element), self.offset, self.at)


def entry_of(record: Record) -> Entry:
    topic, first, payloads, offset, at = record
    many, block, of_block, element = pack(payloads)
    return Entry(topic, offset, many, first, at, block, of_block, element)


def messages_in(block: bytes | memoryview, element: int) -> list[bytes]:
    return _decode_block(list_in(block, element))


def list_in(block: bytes | memoryview, element: int) -> msgspec.Raw | bytes | memoryview:
    """The messages as the bytes of a list."""
    return _decode_packet(memoryview(block)[1:])[element] if element else block


class Mark(NamedTuple):
    """A batch, by name."""

    topic: Topic
    offset: int
    many: int
    first: MessageId
    at: float


class Run(NamedTuple):
    """Names of consecutive messages of one publisher."""

    first: MessageId
    many: int


class Damage(NamedTuple):
    """A range of offsets whose messages are not to be had from this log."""

    first: int
    last: int
    ids: tuple[Run, ...]
    """Exactly the messages of the range, where that is known; empty where it is not."""
    why: str
    """For people: file and place."""


Cut = dict[NodeId, tuple[int, int]]
"""Per publisher the incarnation and counter of the newest message that counts as known."""


class Broken(Exception):  # noqa: N818 - a state of bytes, for the reader
    """These bytes are not a frame, or not one as it was written. `args[1]` is the head, when that much is good."""


def frames_of(entries: Sequence[Entry]) -> tuple[list[bytes], list[int]]:
    """The pieces of the entries' frames, to be written one after the other, and each frame's length.

    Column by column: with a step of the interpreter for each entry and field, this took longer than the disk.
    """
    topics, offsets, many, firsts, times, blocks, of_blocks, elements = zip(*entries, strict=True)
    heads = [*map(encode_block, zip(topics, offsets, many, firsts, times, of_blocks, elements, strict=True))]
    sizes = [*map(len, blocks)]
    openings = map(OPENING.pack, repeat(MAGIC), map(len, heads), sizes, map(checksum, heads, sizes))
    beginnings = [*map(concat, openings, heads)]
    pieces = [*chain.from_iterable(zip(beginnings, blocks, strict=True))]
    return pieces, [*map(int.__add__, map(len, beginnings), sizes)]


def frame_length(data: bytes | memoryview, place: int = 0) -> int:
    """What the opening there claims; 0 when it is none."""
    if place + OPENING.size > len(data):
        return 0
    magic, head, block, _ = OPENING.unpack_from(data, place)
    return OPENING.size + int(head) + int(block) if magic == MAGIC else 0


def decode_entry(data: bytes | memoryview) -> Entry:
    """With its messages as they are packed. Broken when it is not exactly what was written."""
    try:
        magic, head_size, block_size, of_head = OPENING.unpack_from(data)
        end = OPENING.size + head_size
        head, block = data[OPENING.size : end], data[end:]
        if magic != MAGIC or len(block) != block_size or of_head != checksum(head, block_size):
            raise Broken("its names do not match their checksum")
        topic, offset, many, first, at, body, element = _decode_head(head)
    except (StructError, msgspec.MsgspecError) as error:
        raise Broken(f"unreadable: {error}") from None
    if body != checksum(block):
        raise Broken("its messages do not match their checksum", Mark(topic, offset, many, first, at))
    return Entry(topic, offset, many, first, at, bytes(block), body, element)


def decode_frame(data: bytes | memoryview) -> Record:
    """Broken when it is not exactly what was written."""
    entry = decode_entry(data)
    try:
        return entry.record()
    except (IndexError, msgspec.MsgspecError) as error:
        raise Broken(f"holds no messages: {error}", Mark(*entry[:5])) from None


def row_checksum(*fields: int | str) -> int:
    """Of the small tables' rows."""
    return checksum(repr(fields).encode()) >> 1  # SQLite's integers have a sign
