"""Deliveries that have to wait until what came before them is in the log: in memory, and beyond a budget on disk."""

import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import IO, NamedTuple

import msgspec

from cubecast.ids import Counter, MessageId, Topic
from cubecast.log.record import RECORD_OVERHEAD
from cubecast.net.port.chunks import weight

BUDGET = 8 << 20
_length = Struct("<I")


class Held(NamedTuple):
    topic: Topic
    first: MessageId
    payloads: list[bytes]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Held).decode


class Holding:
    """A queue. The file is gone with the process: what was held and never logged was never promised."""

    def __init__(self, directory: Path | None, budget: int = BUDGET) -> None:
        self._directory, self._budget = directory, budget
        self._items: deque[tuple[Held, int]] = deque()
        self._bytes = 0
        self._file: IO[bytes] | None = None
        self._read = self._written = 0
        self.firsts: dict[tuple[Topic, int, int], Counter] = {}
        """Of each publisher the first message that came to wait."""

    def put(self, topic: Topic, first: MessageId, payloads: Sequence[bytes]) -> None:
        item, size = Held(topic, first, list(payloads)), weight(payloads) + RECORD_OVERHEAD
        self.firsts.setdefault((topic, first[0], first[1]), first[2])
        if self._file is None and self._bytes + size <= self._budget:
            self._items.append((item, size))
            self._bytes += size
        else:
            self._write(_encode(item))

    def _write(self, content: bytes) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115 - open as long as it is needed
            self._read = self._written = 0
        self._file.seek(self._written)
        self._file.write(_length.pack(len(content)) + content)
        self._written += _length.size + len(content)

    def get(self) -> Held | None:
        """The next one; None when nothing waits."""
        if self._items:
            item, size = self._items.popleft()
            self._bytes -= size
            return item
        if self._file is None:
            return None
        self._file.seek(self._read)
        (length,) = _length.unpack(self._file.read(_length.size))
        item = _decode(self._file.read(length))
        self._read += _length.size + length
        if self._read == self._written:
            self._file.close()
            self._file = None
        return item
