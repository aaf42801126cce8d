"""The files that hold the messages: frames one after the other, written once, in the order of delivery.

They are the truth; everything else about a log can be worked out from them again. Follows decision 0029.
"""

import errno
import mmap
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, repeat
from pathlib import Path
from typing import NamedTuple, TypeAlias

from cubecast.ids import MessageId, Topic
from cubecast.log.record import MAGIC, Broken, Entry, decode_frame, frame_length, frames_of

# A segment file that is written at its end, past the page cache where that pays.
#
# What is written here is seldom read again soon: who follows closely is served from memory. Bringing it into the page
# cache costs several times what writing it costs, so large writes go to the disk directly, from one buffer that is used
# again and again. Direct writes begin and end at multiples of a block; the crumbs before and behind go through the
# cache, so nothing in the file shows which way it was written. Where a file system refuses, all of it goes through the
# cache. Follows decision 0029.

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


# The files by their numbers, and the frames in them.

SEGMENT_BYTES = 64 << 20
MOST = 1 << 31
"""Bytes of a segment; it may exceed what is wanted by one commit."""
MOST_OPEN = 8
"""Files a reader keeps open."""
_name = re.compile(r"log\.(\d{8})\.segment")


Placed: TypeAlias = tuple[Topic, int, int, MessageId, float, int, int, int]
"""A batch by name, as a `Mark`, and where its frame is: file, start, length. A mere tuple, made by the thousand."""


class Junk(NamedTuple):
    """Bytes of a segment that are no frame."""

    start: int
    length: int
    why: str


def segment_path(directory: Path, number: int) -> Path:
    return directory / f"log.{number:08d}.segment"


def segment_numbers(directory: Path) -> list[int]:
    found = (_name.fullmatch(path.name) for path in directory.glob("log.*.segment"))
    return sorted(int(match[1]) for match in found if match)


class Segments:
    """To write: the last file, from where its last good frame ends."""

    def __init__(self, directory: Path, number: int, end: int) -> None:
        self.directory = directory
        self.number, self.end = number, end
        self._limit = 0
        """Bytes of all files together beyond which the disk counts as full; 0 for the disk's own limit."""
        self._sizes = {one: segment_path(directory, one).stat().st_size for one in segment_numbers(directory)}
        self._file = self._open()

    def _open(self) -> Output:
        path = segment_path(self.directory, self.number)
        is_new = not path.exists()
        output = Output(path)
        output.cut(self.end)
        self._sizes[self.number] = self.end
        if is_new:
            sync_directory(self.directory)
        return output

    def write(self, entries: Sequence[Entry]) -> list[Placed]:
        """On the disk when this returns. They count once `keep` is called."""
        if self.end >= SEGMENT_BYTES:
            self._file.close()
            self.number, self.end = self.number + 1, 0
            self._file = self._open()
        pieces, lengths = frames_of(entries)
        *starts, end = accumulate(lengths, initial=self.end)
        if self._limit and self.size + end - self.end > self._limit:
            raise OSError(errno.ENOSPC, f"the log is full: it may have {self._limit} bytes")
        self._file.write(pieces, self.end)
        self._file.sync()
        names = list(zip(*entries, strict=True))[:5]
        return list(zip(*names, repeat(self.number), starts, lengths))

    def keep(self, placed: Sequence[Placed]) -> None:
        if placed:
            *_, start, length = placed[-1]
            self.end = self._sizes[self.number] = start + length

    def cut_off(self) -> None:
        """What was written last does not count."""
        self._file.cut(self.end)

    def set_limit(self, size: int) -> None:
        self._limit = size

    @property
    def size(self) -> int:
        return sum(self._sizes.values())

    @property
    def oldest(self) -> int:
        return min(self._sizes)

    def remove(self, number: int) -> None:
        segment_path(self.directory, number).unlink(missing_ok=True)
        del self._sizes[number]

    def close(self) -> None:
        self._file.close()


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class SegmentReader:
    """Keeps files open, so that reading a frame is one call."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[int, int] = {}

    def read(self, file: int, start: int, length: int) -> bytes:
        """Fewer bytes where the file ends before; none where no frame can be."""
        if not (0 <= start < MOST and 0 < length < MOST):
            return b""
        if file not in self._files:
            if len(self._files) >= MOST_OPEN:
                self.close()  # also of files that were removed meanwhile and still take room
            try:
                self._files[file] = os.open(segment_path(self._directory, file), os.O_RDONLY)
            except FileNotFoundError:
                return b""
        return os.pread(self._files[file], length, start)

    def close(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()


def scan(directory: Path, number: int, start: int = 0) -> Iterator[Placed | Junk]:
    """Every frame of a file from there on, and what lies between them and is none."""
    path = segment_path(directory, number)
    data = memoryview(path.read_bytes() if path.exists() else b"")
    while start < len(data):
        length, why = frame_length(data, start), "no frame begins here"
        if length and start + length <= len(data):
            try:
                record = decode_frame(data[start : start + length])
                yield record.topic, record.offset, len(record.payloads), record.first, record.at, number, start, length
                start += length
                continue
            except Broken as error:
                why = str(error.args[0])
        elif length:
            why = "a frame begins here that ends behind the file"
        following = _next_frame(data, start + 1)
        yield Junk(start, following - start, why)
        start = following


def _next_frame(data: memoryview, start: int) -> int:
    """Where a good frame begins next, or the end."""
    content = bytes(data)
    while (start := content.find(MAGIC, start)) >= 0:
        length = frame_length(data, start)
        if length and start + length <= len(data):
            try:
                decode_frame(data[start : start + length])
            except Broken:
                pass
            else:
                return start
        start += 1
    return len(data)
