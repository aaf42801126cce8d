"""What protocols of a model without failures and without timers have to say about both: nothing happens."""

from collections.abc import Hashable
from typing import ClassVar

from cubecast.errors import LocalProtocolError
from cubecast.ids import NodeId, Topic
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import Effects


class FaultFree(Handlers):
    __slots__ = ()
    sets_timers: ClassVar[bool] = False
    """A simulator may take a stretch of time at once (`sim.windows`)."""

    def on_start(self, now: float) -> Effects:
        return []

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        raise LocalProtocolError(f"{type(self).__name__} sets no timers, so {timer!r} is not one of its own")

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        return []

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        return []


class Broadcast(FaultFree):
    """Besides, everybody gets everything."""

    __slots__ = ()

    def subscribe(self, now: float, topic: Topic) -> Effects:
        raise LocalProtocolError("a broadcast reaches every node from the start; there is nothing to subscribe to")

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        raise LocalProtocolError("a broadcast reaches every node; nobody can leave it")
