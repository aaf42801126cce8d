"""What a protocol machine is: input in, list of effects out, run to completion.

A machine owns no clock, socket, thread, global random or log. Time is the first argument of every entry point, timers
are effects and later inputs, randomness is injected. Two drivers interpret effects, `sim.world` and `net.driver`, and
both end in `assert_never`, so a new effect cannot be forgotten.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from cubecast.ids import NodeId, Topic
from cubecast.protocol.effects import Deliver, Effect, Effects, Send
from cubecast.protocol.inputs import Interest


@dataclass(slots=True)
class Packet:
    """Base of what one node hands to the network for another. Immutable: forwarding hands on the same object.

    `publication` says whether it carries a publication of its `topic`; such packets also have `message` (the id of the
    first one inside) and `payloads`. Control packets leave it False. A `bundle` carries publications of several
    publishers, listed in `messages`, each with its own `message`.
    """

    publication: ClassVar[bool] = False
    bundle: ClassVar[bool] = False

    frame: bytes | None = field(default=None, init=False, repr=False, compare=False)
    """Its encoded form, kept by the driver that encoded or decoded it, so that forwarding never encodes again."""

    born: float = field(default=0.0, init=False, repr=False, compare=False)
    """When it was first sent (simulated) or arrived here (live), kept by the driver; it does not travel."""


class Machine(Protocol):
    """A protocol at one node. An illegal request raises LocalProtocolError, an illegal packet RemoteProtocolError."""

    def on_start(self, now: float) -> Effects: ...

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects: ...

    def on_timer(self, now: float, timer: Hashable) -> Effects: ...

    def on_peer_down(self, now: float, peer: NodeId) -> Effects: ...

    def on_peer_up(self, now: float, peer: NodeId) -> Effects: ...

    def publish(self, now: float, topic: Topic, payloads: Sequence[bytes]) -> Effects: ...

    def subscribe(self, now: float, topic: Topic) -> Effects: ...

    def unsubscribe(self, now: float, topic: Topic) -> Effects: ...

    def invariants(self) -> None:
        """Raise AssertionError when the state contradicts itself; run after every step in tests and fault runs."""

    def waiting(self) -> list[str]:
        """One line per thing this node still waits for, for people; empty when it is at rest."""


@runtime_checkable
class Follower(Machine, Protocol):
    """A machine whose application need not name its topics."""

    def follow(self, now: float, interest: Interest | None) -> Effects: ...


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
