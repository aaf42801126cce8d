"""What a protocol machine is: input in, list of effects out, run to completion.

A machine owns no clock, socket, thread, global random or log. Time is the first argument of both entry points, timers
are effects and later inputs, randomness is injected. Two drivers interpret effects, `sim.world` and `net.node.driver`,
and both end in `assert_never`, so a new effect cannot be forgotten.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Protocol, get_args

from cubecast.errors import LocalProtocolError
from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.effects import Deliver, Effect, Effects, Send
from cubecast.protocol.inputs import Input, Publish, Subscribe


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
    method = getattr(machine, given.method, None)
    if method is None:
        raise LocalProtocolError(f"{type(machine).__name__} knows no {given.method}; nothing was done")
    effects: Effects | None = _CALLS[type(given)](method, now, given)
    return [] if effects is None else effects


def _publish(publish: Any, now: float, given: Any) -> Any:
    more: dict[str, Any] = {"hurry": True} if given.hurry else {}
    if given.attributes:
        more["attributes"] = given.attributes
    return publish(now, given.topic, given.payloads, **more)


def _subscribe(subscribe: Any, now: float, given: Any) -> Any:
    return subscribe(now, given.topic) if given.filter is None else subscribe(now, given.topic, filter=given.filter)


def _call(kind: type) -> Callable[[Any, float, Any], Any]:
    """How a machine's method for this kind of input is called: with the time and the fields."""
    fields = kind.__match_args__  # type: ignore[attr-defined]
    if kind in _WITH_OPTIONS:
        return _WITH_OPTIONS[kind]
    if not fields:
        return lambda method, now, _: method(now)
    values = attrgetter(*fields)
    if len(fields) == 1:
        return lambda method, now, given: method(now, values(given))
    return lambda method, now, given: method(now, *values(given))


_WITH_OPTIONS = {Publish: _publish, Subscribe: _subscribe}
"""Inputs with fields that few machines take: a machine is told of them only where they are set."""
_CALLS = {kind: _call(kind) for kind in get_args(Input)}


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
