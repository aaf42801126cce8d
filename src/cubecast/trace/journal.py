"""What a living node leaves behind while it runs: lines of JSON, each complete when the call that wrote it returned.

Parquet files are only readable once they are closed, and a killed process closes nothing. So a live node appends short
lines (one per batch, not per message) and `collect` turns the journals of a run into a trace dataset. A last line that
was torn by a crash is left out; a journal that does not end in `stop` or `quiescent` ends in `crash`. A journal that
could not be written any more while its node went on says so in its name, for which a full disk has room: in the trace
rows are missing at its end, so that what others heard of the node afterwards is not taken for invented.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cubecast.errors import TraceError
from cubecast.ids import NodeId
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.partial import NOT_DECIDABLE, Restriction, Window, is_partial, windows
from cubecast.trace.rows import LINES, RUN, Unfolding
from cubecast.trace.schema import Kind

JOURNAL_SUFFIX = ".jsonl"
LOST_SUFFIX = ".lost.jsonl"
VERDICT = "verdict.json"
"""What was last said about the journals beside it."""


class JournalWriter:
    """Appends lines to one file; what was flushed survives a kill."""

    def __init__(self, directory: Path, node: NodeId, incarnation: int, instance: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / f"node-{node:05d}-{incarnation:05d}-{instance}{JOURNAL_SUFFIX}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._lines: list[str] = []

    def line(self, kind: str, time: float, *values: Any) -> None:
        self._lines.append(json.dumps((kind, time, *values), separators=(",", ":")))

    def flush(self) -> None:
        if self._lines:
            data = ("\n".join(self._lines) + "\n").encode()
            self._lines.clear()
            while data:
                data = data[os.write(self._file, data) :]

    def close(self) -> None:
        try:
            self.flush()
        except OSError:
            self.abandon()
            raise
        os.close(self._file)

    def abandon(self) -> None:
        """It cannot be written, and what is not flushed is lost; the collector must know."""
        self._lines.clear()
        os.close(self._file)
        self._path.rename(self._path.with_name(self._path.name.removesuffix(JOURNAL_SUFFIX) + LOST_SUFFIX))

    def remove(self) -> None:
        self._lines.clear()
        os.close(self._file)
        self._path.unlink()


def _lines(path: Path) -> Iterator[list[Any]]:
    """Whole lines; a torn last one is left out, anything else that is damaged is an error."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            if not isinstance(found, list) or len(found) < 2 or str(found[0]) not in LINES:
                raise TraceError(f"{path}, line {number}: this is not a line of a journal")
            yield found


def journals(directory: Path) -> dict[NodeId, list[Path]]:
    """The journals of a run by node, each node's in the order of its incarnations."""
    found: dict[NodeId, list[Path]] = {}
    for path in sorted(directory.glob(f"node-*{JOURNAL_SUFFIX}")):
        found.setdefault(int(path.name.split("-")[1]), []).append(path)
    return found


def protocol_of(directory: Path) -> str | None:
    """What the nodes ran, as their journals say; None where they are older and do not."""
    first = (next(_lines(path), None) for paths in journals(directory).values() for path in paths)
    named = sorted({line[2] for line in first if line is not None and line[0] == RUN and line[2]})
    if len(named) > 1:
        raise TraceError(f"{directory} holds journals of {' and of '.join(named)}; collect those of one cluster")
    return named[0] if named else None


def events(node: NodeId, paths: list[Path]) -> Iterator[Event]:
    """A node's history from its journals."""
    state = Unfolding(node)
    for path in paths:
        state.ended = True
        state.incarnation = int(path.name.split("-")[2])
        for kind, time, *values in _lines(path):
            yield from state.unfold(kind, time, values)
        if path.name.endswith(LOST_SUFFIX):
            state.hole()
            yield state.row(Kind.STOP, detail="the journal could not be written any more; the node went on")
        elif not state.ended:
            yield state.row(Kind.CRASH)


def unfolded(node: NodeId, files: Iterable[tuple[Path, Iterable[list[Any]]]]) -> Iterator[Event]:
    """The rows of a node's journals as far as they go; that the last one goes no further means nothing."""
    state = Unfolding(node)
    for place, (path, lines) in enumerate(files):
        if place and not state.ended:
            yield state.row(Kind.CRASH)
        state.incarnation = int(path.name.split("-")[2])
        for kind, time, *values in lines:
            yield from state.unfold(kind, time, values)


def collect(directory: Path, out: Path, info: RunInfo) -> int:
    """Turn the journals of a run into a trace dataset; how many rows it has."""
    # Here, because nodes write journals and need not load Arrow for that.
    from cubecast.trace.writer import TraceWriter

    found = journals(directory)
    if not found:
        raise TraceError(f"{directory} holds no journals (node-*{JOURNAL_SUFFIX})")
    info = replace(info, nodes=len(found), clock_unit="s")
    lost = [path.name for paths in found.values() for path in paths if path.name.endswith(LOST_SUFFIX)]
    if lost:
        info = replace(info, parameters=info.parameters | {"lost_journals": lost})
    known: dict[tuple[NodeId, int], Window] = {}
    for node, paths in found.items():
        known |= windows(node, (line for path in paths for line in _lines(path)))
    restriction = Restriction(known) if is_partial(known) else None
    if restriction is not None:
        info = _partial(info, found, restriction)
    rows = 0
    with TraceWriter(out, info) as writer:
        for node, paths in found.items():
            history = events(node, paths)
            for event in history if restriction is None else restriction.rows(history):
                writer.write(event)
                rows += 1
    return rows


def _partial(info: RunInfo, found: Mapping[NodeId, list[Path]], restriction: Restriction) -> RunInfo:
    """The header of a trace that does not tell everything says so, and what it leaves out."""
    for node, paths in found.items():
        for _ in restriction.rows(events(node, paths)):
            pass  # a first reading, to know who was heard of
    restriction.begin_again()
    left_out = [list(one) for one in sorted(restriction.unrecorded)]
    says = "only what was published while its publisher's journal was written is in this trace"
    return replace(
        info,
        promises=tuple(one for one in info.promises if one not in NOT_DECIDABLE),
        parameters=info.parameters | {"partial": says, "publishers_without_a_journal": left_out},
    )
