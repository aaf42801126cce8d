"""What only somebody who sees the whole simulated world can judge: its clock is everybody's, and faults are known.

The promises of the checker speak of what happened before what; a confirmed subscription promises more: whatever is
published *later*, anywhere, arrives.
"""

from collections.abc import Iterable, Mapping

from cubecast.ids import NodeId, Topic
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind

Life = tuple[NodeId, int]
Message = tuple[Topic | None, int | None, int | None, int | None]


def needless_restarts(events: Iterable[Event]) -> tuple[str, ...]:
    """An incarnation may end itself only where somebody was suspected, rightly or not, or came back from a crash."""
    ended = []
    for event in events:
        if event.kind in (Kind.SUSPECT, Kind.CRASH):
            return ()
        if event.kind == Kind.STOP:
            ended.append(event.node)
    return tuple(f"node {node} ended an incarnation although nobody suspected anybody" for node in ended)


def missed_although_ready(events: list[Event], interests: Mapping[NodeId, tuple[float, str]]) -> tuple[str, ...]:
    """Publications of nodes that live to the end which a subscription, confirmed earlier and open to the end, misses.

    `interests` are those known at the end: since when, and how the topics they match begin.
    """
    to_the_end = {(event.node, event.incarnation) for event in events if event.kind == Kind.QUIESCENT}
    ready = _ready(events, to_the_end)
    delivered = {(event.node, _message(event)) for event in events if event.kind == Kind.DELIVER}
    missed = []
    for event in events:
        if event.kind != Kind.PUBLISH or (event.node, event.incarnation) not in to_the_end or event.topic is None:
            continue
        since = {node: at for (node, topic), at in ready.items() if topic == event.topic}
        since |= {node: at for node, (at, begin) in interests.items() if event.topic.startswith(begin)}
        missed += [
            f"node {node}, ready for {event.topic} at {at:g}, misses {_message(event)}, published at {event.time:g}"
            for node, at in since.items()
            if at < event.time and (node, _message(event)) not in delivered
        ]
    return tuple(missed)


def _ready(events: Iterable[Event], to_the_end: set[Life]) -> dict[tuple[NodeId, Topic], float]:
    """Subscriptions of lives that last to the end and are not ended by the application: since when they are ready."""
    ready: dict[tuple[NodeId, Topic], float] = {}
    for event in events:
        if event.topic is not None and (event.node, event.incarnation) in to_the_end:
            if event.kind == Kind.SUBSCRIBED:
                ready[event.node, event.topic] = event.time
            elif event.kind == Kind.UNSUBSCRIBE:
                ready.pop((event.node, event.topic), None)
    return ready


def _message(event: Event) -> Message:
    return event.topic, event.source, event.source_incarnation, event.counter
