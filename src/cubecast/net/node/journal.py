"""A live node's journal: the lines of its history on disk, before anybody sees what they tell of."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cubecast.ids import NodeId, Topic
from cubecast.net.links.handshake import Place
from cubecast.net.settings.config import NodeConfig
from cubecast.protocol.effects import Effect
from cubecast.protocol.inputs import Input
from cubecast.protocol.inspector import Reached
from cubecast.trace.journal import JournalWriter
from cubecast.trace.recording import Recording
from cubecast.trace.rows import BASE, OFF, RUN
from cubecast.trace.schema import Kind


class Journal:
    """Written at the end of every step, before anybody acts on its effects."""

    def __init__(
        self,
        directory: Path,
        node: int,
        incarnation: int,
        instance: bytes,
        *,
        protocol: str = "",
        packets: bool = False,
    ) -> None:
        self._writer = JournalWriter(directory, node, incarnation, instance.hex()[:8])
        self._recording = Recording(self._writer.line, packets=packets)
        self._protocol = protocol
        self._packets = packets
        self._incarnation = incarnation

    @classmethod
    def of(cls, config: NodeConfig, directory: Path, place: Place) -> "Journal":
        """That of a node with these settings."""
        who = (place.node, place.incarnation, place.instance)
        return cls(directory, *who, protocol=config.protocol, packets=config.journal_packets)

    def started(self, now: float) -> None:
        self._writer.line(RUN, now, self._protocol)
        self._recording.started(now, self._incarnation)
        self._writer.flush()

    def began_late(self, now: float, published: Mapping[Topic, int], subscriptions: Sequence[Reached]) -> None:
        """Switched on in the middle of a life: what was before, and where each subscription is, as its cut."""
        self._writer.line(RUN, now, self._protocol)
        self._recording.started(now, self._incarnation)
        self._writer.line(BASE, now, published)
        for one in subscriptions:
            self._recording.found(now, one.topic, one.delivered, confirmed=one.is_confirmed)
        self._writer.flush()

    def switched_off(self, now: float) -> None:
        """The node goes on and nothing more is written."""
        self._writer.line(OFF, now)
        self._writer.close()

    def packet(self, now: float, sender: NodeId, packet: Any, effects: list[Effect]) -> None:
        """A packet that the machine took, and what came of it."""
        if self._packets:
            self._recording.packet(Kind.RECEIVE, now, sender, packet)
        self._recording.effects(now, effects)
        self._writer.flush()

    def step(self, now: float, given: Input, effects: list[Effect]) -> None:
        """Any other input that the machine took, and what came of it."""
        self._recording.asked(now, given, effects)
        self._recording.effects(now, effects)
        self._writer.flush()

    def ended(self, now: float, *, at_rest: bool) -> None:
        """The last line: at rest nothing was under way."""
        self._recording.ended(now, Kind.QUIESCENT if at_rest else Kind.STOP)
        self._writer.close()

    def abandon(self) -> None:
        """It cannot be written any more."""
        self._writer.abandon()

    def drop(self) -> None:
        """It was not this node's history after all."""
        self._writer.remove()
