"""The witness: a small file that names every batch committed since the index was last synced.

A log that was cut short looks like one whose writer had not come any further. So after each commit the names of its
batches are written here as well, before anybody hears that they are durable. When the log is opened, a batch that is
named here and not found there is known to be lost, with its place and its names, so that it can be had from a peer.
The file has its full size from the beginning: a full disk does not touch it. Follows decision 0020.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import msgspec

from cubecast.checksums import checksum
from cubecast.log.record import Mark

SIZE = 1 << 20
_opening, _checksum = Struct("<8sIQQ"), Struct("<Q")
_START = _opening.size + _checksum.size
_MAGIC = b"cubemark"
_frame = Struct("<IQ")


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Mark]).decode


class Marks:
    """To write."""

    def __init__(self, descriptor: int, before: "Witness") -> None:
        """`before` is what the file says now: it goes on from there."""
        self._file = descriptor
        self._nonce, self._position = before.nonce, before.position
        if not before.position:
            self.begin_anew(0, 0)

    @property
    def is_full(self) -> bool:
        return self._position > SIZE // 2

    def begin_anew(self, file: int, end: int) -> None:
        """Everything up to there in the segments is in the synced index."""
        self._nonce = int.from_bytes(os.urandom(4), "little")  # so that nothing left from before is taken for new
        opening = _opening.pack(_MAGIC, self._nonce, file, end)
        os.pwrite(self._file, opening + _checksum.pack(checksum(opening)), 0)
        self._position = _START

    def add(self, marks: Sequence[tuple[Any, ...]]) -> None:
        """Each the fields of a `Mark`."""
        content = _encode(marks)
        frame = _frame.pack(len(content), checksum(content, self._nonce)) + content
        os.pwrite(self._file, frame, self._position)
        self._position += len(frame)

    def close(self) -> None:
        os.close(self._file)


class Witness(NamedTuple):
    marks: tuple[Mark, ...] = ()
    file: int = 0
    """The segment, and how far it must reach at least."""
    end: int = 0
    nonce: int = 0
    position: int = 0
    """Where the file goes on; 0 when it says nothing."""


def prepare(path: Path) -> int:
    """The file, open and of full size."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    if os.fstat(descriptor).st_size < SIZE:
        os.posix_fallocate(descriptor, 0, SIZE)
    return descriptor


def read_witness(path: Path) -> Witness:
    """What was committed; nothing when there is no file, or one whose opening is damaged."""
    data = path.read_bytes() if path.exists() else b""
    if len(data) < _START or _checksum.unpack_from(data, _opening.size)[0] != checksum(data[: _opening.size]):
        return Witness()
    magic, nonce, file, end = _opening.unpack_from(data)
    return _follow(data, nonce, file, end) if magic == _MAGIC else Witness()


def _follow(data: bytes, nonce: int, file: int, end: int) -> Witness:
    marks: list[Mark] = []
    position = _START
    while position + _frame.size <= len(data):
        length, expected = _frame.unpack_from(data, position)
        content = data[position + _frame.size : position + _frame.size + length]
        if not length or len(content) < length or expected != checksum(content, nonce):
            break
        marks += _decode(content)
        position += _frame.size + length
    return Witness(tuple(marks), file, end, nonce, position)
