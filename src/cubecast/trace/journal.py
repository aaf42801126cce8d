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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cubecast.errors import TraceError
from cubecast.ids import Counter, MessageId, NodeId, Topic
from cubecast.trace.event import Event, Inside, RunInfo
from cubecast.trace.rows import LINES, RUN, Unfolding
from cubecast.trace.schema import Kind

# Journals that begin or end in the middle of a node's life, turned into a trace that can be judged.
#
# A journal that was switched on late begins with what was before it: how many messages the node had published per
# topic, and how far its subscriptions were. One that was switched off early says so. Of such a run only what was
# published while its publisher's journal was written can be judged; everything else is left out of every log, and
# counters begin at 1 again. What is left is a subset of what happened, in the order in which it happened: whatever
# order, gap or duplicate a checker finds in it is real. What it cannot show: that something of before or after was
# right, that something arrived at a node after its journal was switched off (such a log ends in `stop`, which promises
# nothing more), and whether the dependencies a publisher claims are exactly the right ones (P13), because some of them
# may be left out.

NOT_DECIDABLE = ("P13",)

Life = tuple[NodeId, int]


@dataclass
class Window:
    """The messages of one incarnation that were published while its journal was written: base < counter ≤ end."""

    base: dict[Topic, Counter] = field(default_factory=dict)
    last: dict[Topic, Counter] = field(default_factory=dict)
    is_late: bool = False
    is_off: bool = False

    def holds(self, topic: Topic, counter: Counter) -> bool:
        after = self.is_off and counter > self.last.get(topic, self.base.get(topic, 0))
        return counter > self.base.get(topic, 0) and not after


def windows(node: NodeId, lines: Iterable[list[Any]]) -> dict[Life, Window]:
    """What a node's journals hold, by incarnation."""
    found: dict[Life, Window] = {}
    window = Window()
    for kind, _, *values in lines:
        match kind, values:
            case Kind.START, [incarnation, *_]:
                window = found.setdefault((node, incarnation), Window())
            case "base", [published]:
                window.base, window.is_late = dict(published), True
            case "off", []:
                window.is_off = True
            case Kind.PUBLISH, [topic, first, count, *_]:
                window.last[topic] = first + count - 1
    return found


def is_partial(found: Mapping[Life, Window]) -> bool:
    return any(window.is_late or window.is_off for window in found.values())


class Restriction:
    """Rows as if nothing had ever been but what the windows hold."""

    def __init__(self, found: Mapping[Life, Window]) -> None:
        self._windows = found
        self._left_out: dict[Life, int] = {}
        self.unrecorded: set[Life] = set()
        """Publishers that were heard of and left no journal."""

    def begin_again(self) -> None:
        """The rows will be read once more."""
        self._left_out.clear()

    def rows(self, events: Iterable[Event]) -> Iterator[Event]:
        """Numbered as if those left out had never been; where rows are missing, numbers are."""
        for event in events:
            log, kept = (event.node, event.incarnation), self._kept(event)
            left_out = self._left_out.get(log, 0)
            if kept is None:
                self._left_out[log] = left_out + 1
            else:
                yield kept._replace(seq=event.seq - left_out)

    def _kept(self, event: Event) -> Event | None:
        topic = event.topic
        if event.messages is not None:
            event = event._replace(messages=tuple(self._inside(topic, event.messages)))
        if topic is None:
            return event
        if event.cut is not None:
            event = event._replace(cut=tuple(self._cut(topic, event.cut)))
        if event.deps is not None:
            named = (self._within(topic, one) for one in event.deps)
            event = event._replace(deps=tuple(one for one in named if one is not None))
        if event.source is None or event.source_incarnation is None or event.counter is None:
            return event
        message = self._within(topic, MessageId(event.source, event.source_incarnation, event.counter))
        if message is not None:
            return event._replace(counter=message.counter)
        is_packet = event.kind in (Kind.SEND, Kind.RECEIVE)
        return event._replace(source=None, source_incarnation=None, counter=None) if is_packet else None

    def _inside(self, topic: Topic | None, messages: Iterable[Inside]) -> Iterator[Inside]:
        for one in messages:
            name = one.topic or topic
            kept = None if name is None else self._within(name, MessageId(*one[:3]))
            if kept is not None:
                yield one._replace(counter=kept.counter)

    def _within(self, topic: Topic, message: MessageId) -> MessageId | None:
        window = self._window(message)
        if window is None or not window.holds(topic, message.counter):
            return None
        return message._replace(counter=message.counter - window.base.get(topic, 0))

    def _cut(self, topic: Topic, cut: Iterable[MessageId]) -> Iterator[MessageId]:
        for one in cut:
            window = self._window(one)
            if window is not None:
                base = window.base.get(topic, 0)
                end = window.last.get(topic, base) if window.is_off else one.counter
                yield one._replace(counter=max(0, min(one.counter, end) - base))

    def _window(self, message: MessageId) -> Window | None:
        life = (message.source, message.incarnation)
        window = self._windows.get(life)
        if window is None:
            self.unrecorded.add(life)
        return window


# Writing and reading journals.

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
