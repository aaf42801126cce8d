"""The witness: a small file that names every batch committed since the last checkpoint.

SQLite takes a damaged frame of its write-ahead log for the end of it, and everything behind is gone without a word.
So after each commit the names of its batches are written here as well, before anybody hears that they are durable.
When the log is opened, a batch that is named here and not found there is known to be lost, with its place and its
names, so that it can be had from a peer. The file has its full size from the beginning: a full disk does not touch it.
"""

import os
from pathlib import Path
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import msgspec

from cubecast.ids import MessageId, Topic

SIZE = 1 << 20
_opening, _checksum = Struct("<8s16sI"), Struct("<I")
_START = _opening.size + _checksum.size
_MAGIC = b"cubemark"
_frame = Struct("<II")


class Mark(NamedTuple):
    """A batch, by name."""

    topic: Topic
    offset: int
    many: int
    first: MessageId
    at: float


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Mark]).decode


class Marks:
    """To write. The file is locked, so that a directory has one writer."""

    def __init__(self, descriptor: int, identity: str, before: "Witness") -> None:
        """`before` is what the file says now: it goes on from there."""
        self._file, self._identity = descriptor, bytes.fromhex(identity)
        self._nonce, self._position = before.nonce, before.end
        if before.identity != identity:
            self.begin_anew()

    @property
    def is_full(self) -> bool:
        return self._position > SIZE // 2

    def begin_anew(self) -> None:
        """Everything committed so far is in the database itself."""
        self._nonce = int.from_bytes(os.urandom(4), "little")  # so that nothing left from before is taken for new
        opening = _opening.pack(_MAGIC, self._identity, self._nonce)
        os.pwrite(self._file, opening + _checksum.pack(crc32(opening)), 0)
        self._position = _START

    def add(self, marks: list[Mark]) -> None:
        content = _encode(marks)
        frame = _frame.pack(len(content), crc32(content, self._nonce)) + content
        os.pwrite(self._file, frame, self._position)
        self._position += len(frame)

    def close(self) -> None:
        os.close(self._file)


class Witness(NamedTuple):
    identity: str = ""
    """Of the database the marks are about; empty when the file says nothing."""
    marks: tuple[Mark, ...] = ()
    nonce: int = 0
    end: int = 0


def prepare(path: Path) -> int:
    """The file, open and of full size."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    if os.fstat(descriptor).st_size < SIZE:
        os.posix_fallocate(descriptor, 0, SIZE)
    return descriptor


def read_witness(path: Path) -> Witness:
    """What was committed; nothing when there is no file, or one whose opening is damaged."""
    data = path.read_bytes() if path.exists() else b""
    if len(data) < _START or _checksum.unpack_from(data, _opening.size)[0] != crc32(data[: _opening.size]):
        return Witness()
    magic, identity, nonce = _opening.unpack_from(data)
    return _follow(data, identity.hex(), nonce) if magic == _MAGIC else Witness()


def _follow(data: bytes, identity: str, nonce: int) -> Witness:
    marks: list[Mark] = []
    end = _START
    while end + _frame.size <= len(data):
        length, checksum = _frame.unpack_from(data, end)
        content = data[end + _frame.size : end + _frame.size + length]
        if not length or len(content) < length or checksum != crc32(content, nonce):
            break
        marks += _decode(content)
        end += _frame.size + length
    return Witness(identity, tuple(marks), nonce, end)
