"""What a protocol machine is: input in, list of effects out, run to completion.

A machine owns no clock, socket, thread, global random or log. Time is the first argument of both entry points, timers
are effects and later inputs, randomness is injected. Two drivers interpret effects, `sim.world` and `net.node.driver`,
and both end in `assert_never`, so a new effect cannot be forgotten.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

from cubecast.errors import LocalProtocolError
from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.effects import Deliver, Effect, Effects, Send
from cubecast.protocol.inputs import (
    Advertise,
    Crosspost,
    Expelled,
    Follow,
    Input,
    Leave,
    LinkFull,
    PeerDown,
    PeerUp,
    Publish,
    Reader,
    Start,
    Subscribe,
    Timer,
    Unadvertise,
    Unsubscribe,
)


@dataclass(slots=True)
class Packet:
    """Base of what one node hands to the network for another. Immutable: forwarding hands on the same object.

    `publication` says whether it carries messages. Nearly all that do carry one batch: they have its `topic`, `message`
    (the id of the first) and `payloads`, which drivers read with every packet. A `bundle` carries several batches, and
    only `carried()` tells which.
    """

    publication: ClassVar[bool] = False
    bundle: ClassVar[bool] = False

    frame: bytes | None = field(default=None, init=False, repr=False, compare=False)
    """Its encoded form, kept by the driver that encoded or decoded it, so that forwarding never encodes again."""

    born: float = field(default=0.0, init=False, repr=False, compare=False)
    """When it was first sent (simulated) or arrived here (live), kept by the driver; it does not travel."""

    def carried(self) -> Sequence["Carried"]:
        """The batches of messages inside."""
        if self.bundle:
            raise NotImplementedError(f"{type(self).__name__} is a bundle and does not say what it carries")
        this: Any = self
        return (Carried(this.topic, this.message, len(this.payloads)),) if self.publication else ()

    def mentions(self) -> Iterable[NodeId]:
        """Nodes the receiver may want to talk to because of this packet: the driver sees to it that it can."""
        return ()


class Carried(NamedTuple):
    """Consecutive messages of one source in one topic."""

    topic: Topic
    first: MessageId
    messages: int
    size: int = 0
    """Bytes of their payloads, where the packet knows without much ado."""


def messages_in(packet: Any) -> int:
    """How many messages travel in it."""
    if not packet.publication:
        return 0
    return sum(one.messages for one in packet.carried()) if packet.bundle else len(packet.payloads)


class Machine(Protocol):
    """A protocol at one node. An illegal request raises LocalProtocolError, an illegal packet RemoteProtocolError."""

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects: ...

    def handle(self, now: float, given: Input) -> Effects:
        """Everything else that happens to a node."""

    def invariants(self) -> None:
        """Raise AssertionError when the state contradicts itself; run after every step in tests and fault runs."""

    def waiting(self) -> list[str]:
        """One line per thing this node still waits for, for people; empty when it is at rest."""


class Handlers:
    """A machine with a method per kind of input: `handle` calls the one that is meant.

    What a machine has no method for, its family does not know (`Family.requests`): it is refused, and nothing is done.
    """

    __slots__ = ()

    def handle(self, now: float, given: Input) -> Effects:
        return call_handler(self, now, given)


def call_handler(machine: Any, now: float, given: Input) -> Effects:
    effects: Effects | None = _CALLS[type(given)](machine, now, given)
    return [] if effects is None else effects


def _publish(machine: Any, now: float, given: Any) -> Effects:
    more: dict[str, Any] = {"hurry": True} if given.hurry else {}
    if given.attributes:
        more["attributes"] = given.attributes
    effects: Effects = _asked(machine, "publish")(now, given.topic, given.payloads, **more)
    return effects


def _subscribe(machine: Any, now: float, given: Any) -> Effects:
    more = {} if given.filter is None else {"filter": given.filter}
    effects: Effects = _asked(machine, "subscribe")(now, given.topic, **more)
    return effects


def _asked(machine: Any, name: str) -> Any:
    method = getattr(machine, name, None)
    if method is None:
        raise LocalProtocolError(f"{type(machine).__name__} knows no {name}; nothing was done")
    return method


_CALLS: dict[type, Callable[[Any, float, Any], Any]] = {
    Timer: lambda machine, now, given: machine.on_timer(now, given.timer),
    Publish: _publish,
    Crosspost: lambda machine, now, given: _asked(machine, "crosspost")(now, given.topics, given.payloads),
    Start: lambda machine, now, _: machine.on_start(now),
    PeerUp: lambda machine, now, given: machine.on_peer_up(now, given.peer),
    PeerDown: lambda machine, now, given: machine.on_peer_down(now, given.peer),
    Subscribe: _subscribe,
    Unsubscribe: lambda machine, now, given: _asked(machine, "unsubscribe")(now, given.topic),
    Advertise: lambda machine, now, given: _asked(machine, "advertise")(now, given.topic, given.filter),
    Unadvertise: lambda machine, now, given: _asked(machine, "unadvertise")(now, given.topic),
    Follow: lambda machine, now, given: _asked(machine, "follow")(now, given.interest),
    LinkFull: lambda machine, now, given: _asked(machine, "on_link_full")(now, given.peer, given.full),
    Reader: lambda machine, now, given: _asked(machine, "on_reader")(now, given.topic, given.reads),
    Expelled: lambda machine, now, given: _asked(machine, "on_expelled")(now, given.newest),
    Leave: lambda machine, now, _: _asked(machine, "leave")(now),
}


class Outcomes:
    """What came of many packets, in columns: the effects of `on_packet`, mostly without an object for each.

    A packet goes by the number its driver gave it. Effects of one kind are in the order they were decided in.
    """

    __slots__ = ("delivered_by", "deliveries", "others", "packets", "passed", "peers", "sent_by")

    def __init__(self) -> None:
        self.sent_by: list[int] = []
        self.peers: list[tuple[NodeId, ...]] = []
        self.packets: list[Any] = []
        self.passed: list[int] = []
        """Packets that led to one delivery, that of the publication they carry."""
        self.delivered_by: list[int] = []
        self.deliveries: list[Deliver] = []
        """All others."""
        self.others: list[tuple[int, Effect]] = []

    def add(self, number: int, effects: Effects) -> None:
        """What `on_packet` returned for one packet."""
        for effect in effects:
            if type(effect) is Send:
                self.sent_by.append(number)
                self.peers.append(effect.peers)
                self.packets.append(effect.packet)
            elif type(effect) is Deliver:
                self.delivered_by.append(number)
                self.deliveries.append(effect)
            else:
                self.others.append((number, effect))


class Bulk(Machine, Protocol):
    """A machine that also takes many packets in one call, for a driver that has them and is in a hurry."""

    def on_packets(self, arrivals: Iterable[tuple[int, float, NodeId, Any]], outcomes: Outcomes) -> None:
        """Each (number, now, sender, packet) in turn; what comes of them is exactly what `on_packet` would return."""
