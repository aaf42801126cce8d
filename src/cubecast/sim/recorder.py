"""Turns what happens in a world into trace rows: a recording per node, whose lines are unfolded at once."""

from collections.abc import Sequence
from typing import Any

from cubecast.ids import NodeId
from cubecast.protocol.effects import Effect
from cubecast.protocol.inputs import Input
from cubecast.trace.event import Event
from cubecast.trace.recording import Recording
from cubecast.trace.rows import Unfolding
from cubecast.trace.schema import Kind
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
        self._nodes: dict[NodeId, Recording] = {}

    def of(self, node: NodeId) -> Recording:
        known = self._nodes.get(node)
        return self._begin(node) if known is None else known

    def _begin(self, node: NodeId) -> Recording:
        unfold, keep = Unfolding(node).unfold, self._write

        def line(kind: str, time: float, *values: Any) -> None:
            for event in unfold(kind, time, values):
                keep(event)

        self._nodes[node] = recording = Recording(line)
        return recording

    def asked(self, node: NodeId, now: float, given: Input, effects: Sequence[Effect]) -> None:
        self.of(node).asked(now, given, effects)

    def effect(self, node: NodeId, now: float, effect: Effect) -> None:
        self.of(node).effect(now, effect)

    def packet(self, kind: Kind, node: NodeId, now: float, peer: NodeId, packet: Any, number: int, hops: int) -> None:
        self.of(node).packet(kind, now, peer, packet, number, hops)
