"""Turns what happens in a world into trace rows, numbering each node's history."""

from typing import Any, assert_never

from cubecast.ids import MessageId, NodeId
from cubecast.protocol.effects import (
    Acknowledged,
    Cut,
    Deliver,
    Failed,
    Gap,
    Observe,
    Published,
    Subscribed,
    Unsubscribed,
)
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind, digest_of
from cubecast.trace.writer import TraceWriter


class Recorder:
    """Only exists while a run is traced; a world without one builds no rows.

    Of packets it wants sends and receptions, only the receptions of publications (all that judging needs), or none.
    """

    def __init__(
        self, sink: "TraceWriter | list[Event]", *, packets: bool = True, receptions_only: bool = False
    ) -> None:
        self._write = sink.append if isinstance(sink, list) else sink.write
        self.packets = packets
        self.receptions_only = receptions_only
        self._acknowledged: dict[tuple[NodeId, int, str], int] = {}
        self._seq: dict[tuple[NodeId, int], int] = {}

    def row(self, node: NodeId, incarnation: int, time: float, kind: str, **columns: Any) -> None:
        key = (node, incarnation)
        seq = self._seq.get(key, 0)
        self._seq[key] = seq + 1
        self._write(Event(node, incarnation, seq, time, str(kind), **columns))

    def about(
        self, node: NodeId, incarnation: int, time: float, kind: str, topic: str, message: MessageId, **columns: Any
    ) -> None:
        source, source_incarnation, counter = message
        names = {"topic": topic, "source": source, "source_incarnation": source_incarnation, "counter": counter}
        self.row(node, incarnation, time, kind, **names, **columns)

    def published(self, node: NodeId, incarnation: int, time: float, effect: Published) -> None:
        """One row per message of the batch, each depending on the one before it."""
        deps = effect.dependencies
        digests: list[int | None] = [digest_of(payload) for payload in effect.payloads]
        digests = digests or [None] * effect.count
        for counter, digest in enumerate(digests, effect.counter):
            message = MessageId(node, incarnation, counter)
            self.about(node, incarnation, time, Kind.PUBLISH, effect.topic, message, deps=deps, digest=digest)
            deps = (message,)

    def delivered(self, node: NodeId, incarnation: int, time: float, effect: Deliver) -> None:
        source, source_incarnation, first = effect.message
        for counter, payload in enumerate(effect.payloads, first):
            message = MessageId(source, source_incarnation, counter)
            self.about(node, incarnation, time, Kind.DELIVER, effect.topic, message, digest=digest_of(payload))

    def packet(
        self, node: NodeId, incarnation: int, time: float, kind: str, peer: NodeId, carried: Any, **columns: Any
    ) -> None:
        batches = carried.carried()
        columns |= {"peer": peer, "messages": sum(batch.messages for batch in batches)}
        if len(batches) == 1:
            ((topic, message, *_),) = batches
            self.about(node, incarnation, time, kind, topic, message, **columns)
        else:  # one row cannot name messages of several publishers
            topics = {batch.topic for batch in batches}
            self.row(node, incarnation, time, kind, topic=topics.pop() if len(topics) == 1 else None, **columns)

    def effect(
        self,
        node: NodeId,
        incarnation: int,
        time: float,
        effect: Acknowledged | Failed | Cut | Subscribed | Unsubscribed | Gap | Observe,
    ) -> None:
        match effect:
            case Acknowledged():
                key = (node, incarnation, effect.topic)
                first = self._acknowledged.get(key, 0) + 1
                self._acknowledged[key] = effect.counter
                for counter in range(first, effect.counter + 1):
                    message = MessageId(node, incarnation, counter)
                    self.about(node, incarnation, time, Kind.ACKNOWLEDGED, effect.topic, message)
            case Failed():
                for counter in range(effect.counter, effect.counter + effect.count):
                    message = MessageId(node, incarnation, counter)
                    self.about(node, incarnation, time, Kind.FAILED, effect.topic, message, detail=effect.reason)
            case Cut():
                self.row(node, incarnation, time, Kind.CUT, topic=effect.topic, cut=(effect.last_excluded,))
            case Subscribed():
                self.row(node, incarnation, time, Kind.SUBSCRIBED, topic=effect.topic, cut=effect.cut)
            case Unsubscribed():
                self.row(node, incarnation, time, Kind.UNSUBSCRIBED, topic=effect.topic)
            case Gap():
                for message in effect.missing:
                    self.about(node, incarnation, time, Kind.GAP, effect.topic, message, detail=effect.reason)
            case Observe():
                self.observed(node, incarnation, time, effect)
            case _:
                assert_never(effect)

    def observed(self, node: NodeId, incarnation: int, time: float, effect: Observe) -> None:
        columns = {"topic": effect.topic, "peer": effect.peer, "detail": effect.detail or None}
        if effect.message is not None:
            columns |= dict(zip(("source", "source_incarnation", "counter"), effect.message, strict=True))
        self.row(node, incarnation, time, Kind(effect.kind), **columns)
