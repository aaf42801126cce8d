"""What a log keeps: batches as they were delivered, and how each becomes checked bytes."""

from struct import Struct
from typing import NamedTuple
from zlib import crc32

import msgspec

from cubecast.ids import MessageId, NodeId, Topic

RECORD_OVERHEAD = 200
"""Bytes charged per batch besides its content, in memory as on disk."""

_head = Struct("<QQdQQQ").pack
encode_block = msgspec.msgpack.Encoder().encode
decode_block = msgspec.msgpack.Decoder(list[bytes]).decode


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

    def since(self, offset: int) -> "Record":
        """The part that begins with this offset."""
        skipped = offset - self.offset
        if skipped <= 0:
            return self
        first = self.first._replace(counter=self.first.counter + skipped)
        return Record(self.topic, first, self.payloads[skipped:], offset, self.at)


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


def head_checksum(topic: Topic, first: MessageId, count: int, offset: int, at: float) -> int:
    return crc32(_head(offset, count, at, *first), crc32(topic.encode()))


def body_checksum(head: int, block: bytes) -> int:
    """Begun with the head's, so that a block in another record's place is found, too."""
    return crc32(block, head)


def row_checksum(*fields: int | str) -> int:
    """Of the small tables' rows."""
    return crc32(repr(fields).encode())
