"""A segment file that is written at its end, past the page cache where that pays.

What is written here is seldom read again soon: who follows closely is served from memory. Bringing it into the page
cache costs several times what writing it costs, so large writes go to the disk directly, from one buffer that is used
again and again. Direct writes begin and end at multiples of a block; the crumbs before and behind go through the cache,
so nothing in the file shows which way it was written. Where a file system refuses, all of it goes through the cache.
Follows decision 0029.
"""

import errno
import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

BLOCK = 4096
"""Bytes; of what disks want direct writes to be multiples of, the largest in use."""
BUFFER = 2 << 20
LARGE = 64 << 10
"""Bytes from which on a write is made directly, when it comes in pieces that are worth a copy each."""
MOST_PARTS = 1000
"""Of one write."""


class Output:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        self._direct: int | None = None
        self._buffer: mmap.mmap | None = None
        with suppress(AttributeError, OSError):  # not everywhere
            self._direct = os.open(path, os.O_WRONLY | os.O_DIRECT)

    def cut(self, end: int) -> None:
        os.ftruncate(self._file, end)

    def sync(self) -> None:
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)
        if self._direct is not None:
            os.close(self._direct)

    def write(self, parts: Sequence[bytes], position: int) -> None:
        """All of it from there on."""
        size = sum(map(len, parts))
        if self._direct is None or size < LARGE or size < BLOCK * len(parts) // 2:
            self._write_cached(parts, position)
        else:
            self._write_directly(parts, position)

    def _write_cached(self, parts: Sequence[bytes], position: int) -> None:
        """Without putting them together first, which is a copy less."""
        for begin in range(0, len(parts), MOST_PARTS):
            some = parts[begin : begin + MOST_PARTS]
            size = sum(map(len, some))
            written = os.pwritev(self._file, some, position)
            if written < size:
                _write_all(self._file, memoryview(b"".join(some))[written:], position + written)
            position += size

    def _write_directly(self, parts: Sequence[bytes], position: int) -> None:
        """By way of the buffer. It lies over the file so that blocks meet blocks."""
        if self._buffer is None:
            self._buffer = _memory(BUFFER)
        buffer = self._buffer
        begin = position % BLOCK
        base, room = position - begin, BUFFER - begin
        buffer.seek(begin)
        for part in parts:
            while len(part) > room:
                buffer.write(part[:room])
                part = part[room:]
                self._flush(base, begin, BUFFER)
                base, begin, room = base + BUFFER, 0, BUFFER
                buffer.seek(0)
            buffer.write(part)
            room -= len(part)
        self._flush(base, begin, BUFFER - room)

    def _flush(self, base: int, begin: int, end: int) -> None:
        """This part of the buffer; `base` is where in the file the buffer begins."""
        first = min(end, -(-begin // BLOCK) * BLOCK)
        last = max(first, end // BLOCK * BLOCK)
        with memoryview(self._buffer or b"") as view:
            _write_all(self._file, view[begin:first], base + begin)
            written = self._try_directly(view[first:last], base + first)
            _write_all(self._file, view[first + written : end], base + first + written)

    def _try_directly(self, data: memoryview, position: int) -> int:
        """How much of it was written."""
        if not data or self._direct is None:
            return 0
        try:
            return os.pwrite(self._direct, data, position)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            os.close(self._direct)
            self._direct = None
            return 0


def _memory(size: int) -> mmap.mmap:
    """Begins with a block; in few large pages where there are any, since the disk's driver looks at each."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(AttributeError, OSError):  # not everywhere
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _write_all(descriptor: int, data: memoryview, position: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, position)
        data, position = data[written:], position + written
