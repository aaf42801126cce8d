"""What a run was like, read from its rows: how much was delivered when, what happened meanwhile, along which tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cubecast.errors import TraceError
from cubecast.trace.event import Event
from cubecast.trace.reader import read_trace
from cubecast.trace.schema import Kind

BINS = 120
MOST_ROWS = 2_000_000
"""Of longer runs no story is told: their pages are about numbers."""
_TOLD = [kind.value for kind in (Kind.PUBLISH, Kind.DELIVER, Kind.CRASH, Kind.SUSPECT, Kind.GAP)]
_COLUMNS = ("node", "incarnation", "seq", "time", "kind", "topic", "source", "source_incarnation", "counter", "peer")


@dataclass(frozen=True)
class StoryMark:
    """Something that happened at a moment."""

    at: float
    what: str
    """killed, joined, left, suspected, gap"""
    node: int


@dataclass(frozen=True)
class StoryTree:
    """How one publication travelled: each node it reached, and from whom."""

    topic: str
    source: int
    counter: int
    parents: Mapping[int, int]


@dataclass(frozen=True)
class Story:
    began: float
    width: float
    """Of a bin, in the run's time unit."""
    deliveries: Sequence[int]
    publications: Sequence[int]
    marks: Sequence[StoryMark]
    events: int
    tree: StoryTree | None

    @property
    def lasted(self) -> float:
        return self.width * len(self.deliveries)


def tell_story(directory: Path) -> Story | None:
    """None when there are no rows, too many, or none that can be read."""
    try:
        paths = sorted(directory.glob("*.parquet"))
        if not paths or sum(pq.read_metadata(path).num_rows for path in paths) > MOST_ROWS:
            return None
        table = pa.concat_tables(pq.read_table(path, columns=list(_COLUMNS)) for path in paths)
        table = table.filter(pc.is_valid(table.column("node")))
        return _story(table) if table.num_rows else None
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None  # the verdict says what is wrong with it


def _story(table: pa.Table) -> Story:
    time = table.column("time").cast(pa.float64()).to_numpy()
    kinds = table.column("kind").to_numpy(zero_copy_only=False)
    first, ended = float(np.nanmin(time)), float(np.nanmax(time))
    spoken = time[kinds == Kind.PUBLISH.value]
    talk = float(np.nanmin(spoken)) if len(spoken) else first
    happened = time[np.isin(kinds, _TOLD)]
    last = float(np.nanmax(happened)) if len(happened) else ended
    # A live run begins long before anybody says something, and a simulated one ends when its last timer does: what
    # nodes do to start, and timers without effect, are no part of the story.
    margin = 0.04 * (last - talk)
    began, ended = max(first, talk - margin), min(ended, last + margin)
    width = max(ended - began, 1e-9) / BINS

    def rate(kind: Kind) -> list[int]:
        counted, _ = np.histogram(time[kinds == kind.value], BINS, (began, began + width * BINS))
        return [int(count) for count in counted]

    return Story(
        began,
        width,
        rate(Kind.DELIVER),
        rate(Kind.PUBLISH),
        _marks(table, talk, ended),
        table.num_rows,
        _tree(table),
    )


def _marks(table: pa.Table, talk: float, ended: float) -> list[StoryMark]:
    """Who starts after the first publication joined; gaps of a node within a moment are one mark."""
    words = {Kind.CRASH: "killed", Kind.STOP: "left", Kind.SUSPECT: "suspected", Kind.GAP: "gap", Kind.START: "joined"}
    some = table.filter(pc.is_in(table.column("kind"), pa.array([kind.value for kind in words])))
    marks: dict[tuple[str, int, int], StoryMark] = {}
    for row in some.select(["time", "kind", "node", "peer"]).sort_by("time").to_pylist():
        when = (row["time"] - talk) / max(ended - talk, 1e-9)
        what = words[Kind(row["kind"])]
        subject = row["peer"] if what == "suspected" and row["peer"] is not None else row["node"]
        if when >= 0 and not (what == "joined" and when == 0) and not (what == "left" and when > 0.95):
            marks.setdefault((what, subject, int(when * 60)), StoryMark(row["time"], what, subject))
    return sorted(marks.values(), key=lambda mark: (mark.at, mark.what, mark.node))


def _tree(table: pa.Table) -> StoryTree | None:
    """Of the publication that reached most nodes, the earliest of them; from whom each node had it first."""
    named = pc.and_(pc.equal(table.column("kind"), Kind.RECEIVE.value), pc.is_valid(table.column("counter")))
    received = table.filter(named)
    if not received.num_rows:
        return None
    keys = ["topic", "source", "source_incarnation", "counter"]
    reached = received.group_by(keys).aggregate([("node", "count_distinct"), ("time", "min")])
    order = [("node_count_distinct", "descending"), ("time_min", "ascending"), *((key, "ascending") for key in keys)]
    widest = reached.sort_by(order).slice(0, 1).to_pylist()[0]
    if widest["topic"] is None:
        return None
    same = pa.array(np.ones(received.num_rows, bool))
    for key in keys:
        same = pc.and_(same, pc.equal(received.column(key), widest[key]))
    parents: dict[int, int] = {}
    for row in received.filter(same).sort_by([("time", "ascending"), ("seq", "ascending")]).to_pylist():
        if row["peer"] is not None and row["node"] != widest["source"]:
            parents.setdefault(row["node"], row["peer"])
    return StoryTree(widest["topic"], widest["source"], widest["counter"], parents) if parents else None


# The smallest witness of a violation as a scene: the few rows that show it, in an order that respects causes.

MOST_ROWS_OF_SCENE = 1_000_000
"""Of longer traces no scene is made: reading them as single rows takes minutes."""
MOST_LOGS = 5
Id: TypeAlias = tuple[int, int, int]
LogName: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Moment:
    node: int
    incarnation: int
    seq: int
    kind: str
    message: Id
    culprit: bool
    """The row the witness names."""


@dataclass(frozen=True)
class WitnessScene:
    title: str
    reason: str
    logs: Sequence[LogName]
    messages: Sequence[Id]
    moments: Sequence[Moment]
    """Causes first."""


def scene_of(directory: Path, witness: Mapping[str, Any]) -> WitnessScene | None:
    """Of a witness in a report's JSON; None when it is about no message, or the trace is too long to be drawn."""
    messages = [tuple(one) for one in (witness["message"], witness["other"]) if one is not None]
    paths = list(directory.glob("*.parquet"))
    if not messages or sum(pq.read_metadata(path).num_rows for path in paths) > MOST_ROWS_OF_SCENE:
        return None
    try:
        events = read_trace(directory).events
    except TraceError:
        return None
    place = (witness["node"], witness["incarnation"])
    logs = _logs(place, messages)
    chosen = [
        Moment(event.node, event.incarnation, event.seq, event.kind, named, _is(event, witness))
        for event in events
        if event.kind in (Kind.PUBLISH, Kind.DELIVER)
        and event.topic == witness["topic"]
        and (event.node, event.incarnation) in logs
        and (named := message_of(event)) in messages
    ]
    if not chosen:
        return None
    where = f"node {place[0]}.{place[1]}, row {witness['seq']}"
    title = f"{witness['property']} in {witness['run']} at {where}"
    return WitnessScene(title, witness["reason"], logs, list(dict.fromkeys(messages)), _in_order(chosen))


def _logs(place: LogName, messages: Sequence[Id]) -> list[LogName]:
    """Publishers first, the log that shows it last."""
    publishers = dict.fromkeys((source, incarnation) for source, incarnation, _ in reversed(messages))
    return [*(log for log in publishers if log != place), place][-MOST_LOGS:]


def message_of(event: Event) -> Id:
    """Publications and deliveries always name one."""
    return (event.source or 0, event.source_incarnation or 0, event.counter or 0)


def _is(event: Event, witness: Mapping[str, Any]) -> bool:
    return (event.node, event.incarnation, event.seq) == (witness["node"], witness["incarnation"], witness["seq"])


def _in_order(moments: Sequence[Moment]) -> list[Moment]:
    """Each log's own order, publications before their deliveries; in a circle, by log."""
    waiting = sorted(moments, key=lambda one: (one.node, one.incarnation, one.seq))
    exists = {one.message for one in waiting if one.kind == Kind.PUBLISH}
    ordered: list[Moment] = []
    published: set[Id] = set()
    while waiting:
        heads: dict[LogName, Moment] = {}
        for one in waiting:
            heads.setdefault((one.node, one.incarnation), one)
        free = [
            one
            for one in heads.values()
            if one.kind == Kind.PUBLISH or one.message in published or one.message not in exists
        ]
        chosen = min(free or heads.values(), key=lambda one: (one.kind != Kind.PUBLISH, one.node, one.seq))
        published |= {chosen.message} if chosen.kind == Kind.PUBLISH else set()
        ordered.append(chosen)
        waiting.remove(chosen)
    return ordered
