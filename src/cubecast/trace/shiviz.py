"""Exports a trace as a ShiViz log: one event per pair of lines, with the vector clock that orders it.

ShiViz draws space-time diagrams in the browser. Its parser takes the regular expression in PARSER. Clocks are built
from program order, from send to receive of the same packet, and from publish to deliver of the same message; the
trace's own times are not used.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from cubecast.ids import Incarnation, NodeId
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind

PARSER: Final = r"(?<host>\S+) (?<clock>{.*})\n(?<event>.*)"

Log: TypeAlias = tuple[NodeId, Incarnation]
Clock: TypeAlias = dict[str, int]
Signal: TypeAlias = tuple[object, ...]


def shiviz_log(events: Sequence[Event]) -> str:
    """The log's text: every event after whatever happened before it."""
    return "".join(
        f"{_host(event.node, event.incarnation)} {json.dumps(clock)}\n{describe(event)}\n"
        for event, clock in clocked(events)
    )


def clocked(events: Sequence[Event]) -> Iterator[tuple[Event, Clock]]:
    """Events with their vector clocks, in an order that respects them. Rows caught in a circle are left out."""
    logs: defaultdict[Log, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (event.node, event.incarnation, event.seq)):
        logs[event.node, event.incarnation].append(event)
    emitted = {_emits(event) for event in events} - {None}
    clocks: dict[Signal, Clock] = {}
    now: dict[Log, Clock] = {log: {} for log in logs}
    ready = deque(logs)
    place = dict.fromkeys(logs, 0)
    waiting: defaultdict[Signal, list[Log]] = defaultdict(list)
    while ready:
        log = ready.popleft()
        for event in logs[log][place[log] :]:
            needs = _needs(event)
            if needs in emitted and needs not in clocks:
                waiting[needs].append(log)
                break
            place[log] += 1
            clock = now[log] = _tick(now[log], clocks.get(needs, {}), _host(*log))
            yield event, clock
            signal = _emits(event)
            if signal is not None and signal not in clocks:
                clocks[signal] = clock
                ready.extend(waiting.pop(signal, ()))


def describe(event: Event) -> str:
    """One line for people: what happened, to which message, with whom."""
    words = [event.kind]
    if event.topic is not None:
        words.append(event.topic)
    if event.counter is not None:
        words.append(f"{event.source}.{event.source_incarnation}:{event.counter}")
    if event.peer is not None:
        words.append(f"{'to' if event.kind == Kind.SEND else 'from'} {event.peer}")
    if event.detail:
        words.append(" ".join(event.detail.split()))
    return " ".join(words)


def _host(node: NodeId, incarnation: Incarnation) -> str:
    return f"node{node}.{incarnation}"


def _tick(mine: Clock, theirs: Clock, host: str) -> Clock:
    merged = {name: max(mine.get(name, 0), theirs.get(name, 0)) for name in mine | theirs}
    merged[host] = merged.get(host, 0) + 1
    return merged


def _emits(event: Event) -> Signal | None:
    """What this event makes possible elsewhere."""
    if event.kind == Kind.PUBLISH:
        return "message", *event[5:9]
    if event.kind == Kind.SEND and event.packet is not None:
        return "packet", event.node, event.peer, event.packet
    return None


def _needs(event: Event) -> Signal:
    """What must have happened before this event; never emitted by anything when there is no such thing."""
    if event.kind == Kind.DELIVER:
        return "message", *event[5:9]
    if event.kind == Kind.RECEIVE and event.packet is not None:
        return "packet", event.peer, event.node, event.packet
    return ()
