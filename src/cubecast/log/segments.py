"""The files that hold the messages: frames one after the other, written once, in the order of delivery.

They are the truth; everything else about a log can be worked out from them again.
"""

import errno
import os
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, repeat
from pathlib import Path
from typing import NamedTuple, TypeAlias

from cubecast.ids import MessageId, Topic
from cubecast.log.output import Output
from cubecast.log.record import MAGIC, Broken, Entry, decode_frame, frame_length, frames_of

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
