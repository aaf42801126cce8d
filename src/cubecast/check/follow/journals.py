"""Journals as they grow: whole lines, each once, a node's in the order of its lives."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cubecast.errors import TraceError
from cubecast.trace.journal import LOST_SUFFIX, journals
from cubecast.trace.schema import Kind

AT_ONCE = 4 << 20
"""Bytes read of a file before the next one has its turn."""
ENDS = (Kind.STOP, Kind.CRASH, Kind.QUIESCENT, "off")
_decode = msgspec.json.Decoder().decode_lines


@dataclass
class _Tail:
    path: Path
    offset: int = 0
    """Bytes of whole lines that were read."""
    has_ended: bool = False
    time: float = 0.0

    def read(self) -> list[list[Any]]:
        """The next lines; a torn last one is left for later."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                data = file.read(AT_ONCE)
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        try:
            lines = _decode(whole)
        except msgspec.DecodeError as error:
            raise TraceError(f"{self.path}, behind byte {self.offset}: this is no line of a journal: {error}") from None
        if any(type(line) is not list or len(line) < 2 for line in lines):
            raise TraceError(f"{self.path}, behind byte {self.offset}: this is no line of a journal")
        self.offset += len(whole)
        if lines:
            self.has_ended, self.time = lines[-1][0] in ENDS, lines[-1][1]
        return lines

    def read_again(self) -> Iterator[list[Any]]:
        """Piece by piece: a journal may be larger than memory."""
        left, torn = self.offset, b""
        with self.path.open("rb") as file:
            while left and (data := file.read(min(AT_ONCE, left))):
                left -= len(data)
                whole, end, torn = (torn + data).rpartition(b"\n")
                yield from _decode(whole + end)


class Journals:
    """Those of a run, in one directory or in several."""

    def __init__(self, directories: list[Path]) -> None:
        self.directories = directories
        self._tails: dict[int, list[_Tail]] = {}
        self.lost: list[str] = []
        """Journals that could not be written any more while their nodes went on."""

    def new_lines(self) -> Iterator[tuple[int, list[list[Any]]]]:
        """What came since the last time, a bounded piece of each node's."""
        self._look()
        for node, tails in self._tails.items():
            for place, tail in enumerate(tails):
                lines = tail.read()
                is_last = place == len(tails) - 1
                if lines:
                    yield node, lines
                    break  # the rest later: other nodes have causes
                if not is_last and not tail.has_ended:
                    tail.has_ended = True  # its process is gone: the next one writes elsewhere
                    yield node, [[str(Kind.CRASH), tail.time]]

    def _look(self) -> None:
        for directory in self.directories:
            for node, paths in journals(directory).items():
                tails = self._tails.setdefault(node, [])
                known = {_stem(tail.path): tail for tail in tails}
                for path in paths:
                    tail = known.get(_stem(path))
                    if tail is None:
                        tails.append(_Tail(path))
                    elif tail.path != path:
                        tail.path = path
                        self.lost.append(path.name)

    def read_again(self) -> Iterator[tuple[int, list[tuple[Path, Iterator[list[Any]]]]]]:
        """All that was read so far, node by node: from the disk, since it is not kept."""
        for node, tails in self._tails.items():
            yield node, [(tail.path, tail.read_again()) for tail in tails if tail.offset]

    @property
    def size(self) -> int:
        """Bytes that were read."""
        return sum(tail.offset for tails in self._tails.values() for tail in tails)

    @property
    def have_ended(self) -> bool:
        return bool(self._tails) and all(tails[-1].has_ended for tails in self._tails.values())


def _stem(path: Path) -> str:
    return path.name.removesuffix(LOST_SUFFIX).removesuffix(".jsonl")
