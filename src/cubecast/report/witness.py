"""The smallest witness of a violation as a scene: the few rows that show it, in an order that respects causes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from cubecast.errors import TraceError
from cubecast.trace.event import Event
from cubecast.trace.reader import read_trace
from cubecast.trace.schema import Kind

MOST_ROWS = 1_000_000
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
    if not messages or sum(pq.read_metadata(path).num_rows for path in paths) > MOST_ROWS:
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
