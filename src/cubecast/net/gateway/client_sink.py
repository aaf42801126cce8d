"""A thin client's subscription, as its node's port sees it: what comes becomes messages of the gateway."""

from collections.abc import Sequence
from typing import Any, Protocol

from cubecast.errors import CubecastError
from cubecast.ids import MessageId, Topic
from cubecast.net.gateway.messages import CaughtUp, Deliver, Ended, Lost, Ready, Standing
from cubecast.net.port.chunks import pieces
from cubecast.net.port.port import GapNotice, Logged
from cubecast.net.port.since import PublisherCut

AT_ONCE = 10_000
"""Entries of a cut in one message."""


class Serving(Protocol):
    """The gateway it belongs to."""

    def send(self, message: Any) -> None: ...
    def check_full(self, sink: "ClientSink") -> None: ...
    def forget(self, number: int) -> None: ...


class ClientSink:
    """A client's subscription, as the node's port sees it."""

    __slots__ = ("_gateway", "_number", "asked", "held", "known", "number", "pattern", "size")

    def __init__(self, gateway: Serving, number: int) -> None:
        self._gateway, self._number = gateway, number
        self.number: int | None = None
        """The port's name for it."""
        self.asked = self.held = False
        """Paused because the client said so; because its connection is full."""
        self.known = 0
        """Entries of the cut it began with."""
        self.pattern = ""
        self.size = 0
        """Bytes it is counted with."""

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        source, incarnation, counter = first
        offset, at = (None, 0.0) if logged is None else logged
        for piece in pieces(payloads):
            self._gateway.send(Deliver(self._number, topic, source, incarnation, counter, list(piece), offset, at))
            counter += len(piece)
            offset = None if offset is None else offset + len(piece)
        self._gateway.check_full(self)

    def on_ready(self) -> None:
        self._gateway.send(Ready(self._number))

    def on_live(self, known: PublisherCut) -> None:
        entries = [(*publisher, counter) for publisher, counter in known.items()]
        for start in range(0, len(entries), AT_ONCE):
            self._gateway.send(Standing(self._number, entries[start : start + AT_ONCE]))
        self._gateway.send(CaughtUp(self._number))

    def on_gap(self, gap: GapNotice) -> None:
        named, runs = list(gap.missing), list(gap.runs)
        self._gateway.send(Lost(self._number, gap.topic, named, gap.reason, runs, gap.count, gap.offsets))

    def on_end(self, error: CubecastError | None) -> None:
        if error is not None:
            self._gateway.forget(self._number)
            self._gateway.send(Ended(self._number, str(error), type(error).__name__))
