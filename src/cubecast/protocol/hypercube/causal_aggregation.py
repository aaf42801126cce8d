"""Causal aggregation broadcast (de Araujo et al., ICPP 2018; thesis 2019, chapter 4) and its relatives.

Every node broadcasts to all nodes of a complete cube, along the tree rooted at the publisher. No node fails, no link
loses, nothing is acknowledged. A node i that is about to forward m' to its child k postpones that while a message of
the past of m' is missing which i, and no other node, will forward to k: k could not deliver m' before anyway. When the
missing message arrives, everything it released goes to k in one packet with it.

Why a *level* is all there is to remember. In a complete cube, i is the parent of i XOR 2^c in the tree of l exactly
when l and i agree in their bits 0 … c. So i forwards a message of source s to c < height(s), where height(s) is the
index of the lowest bit in which i and s differ, and a missing message of l postpones the children c < height(l): what
is postponed is always a prefix of the children, `blocked` of them. A message waits for one of the missing ones of the
highest level; when that arrives the next level is computed. Nothing is ever scanned.

Symbols: i this node (`self.node`) · k a child · d dimension · m.s `message.source` · m.vc `vector`, without the
source's own entry, which is `message.counter` · vector_clock `delivery.clock` · vector_max `seen`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from cubecast.errors import RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId
from cubecast.protocol.effects import Effects, Observe, Send
from cubecast.protocol.hypercube.causal_packets import (
    CausalDelivery,
    CausalMessage,
    CausalPacket,
    Vector,
    check_mtu,
    check_names,
    fill,
    rebuild,
)
from cubecast.protocol.hypercube.subscribers import Broadcast
from cubecast.protocol.hypercube.topology import children
from cubecast.protocol.order import PendingBuffer, zero
from cubecast.protocol.parameters import parameter

ROOT: NodeId = 0


class Aggregation(Enum):
    OFF = "off"
    ON = "on"
    RIDING = "riding"  # on, and whatever else is ready for a child with postponed messages waits for their packet


class Tree(Enum):
    SOURCE = "source"  # one per publisher
    SINGLE = "single"  # the one of node 0, to which a publisher hands its message


class PacketOrder(Enum):
    """How the messages of one packet follow each other, on which the papers are silent and much depends.

    A receiver handles them one after the other. If an effect comes before its cause, it is postponed again and leaves
    again with the cause, so what was aggregated once stays together. The other way round the cause goes on alone.
    """

    ARRIVAL = "arrival"  # as the pending set was filled; effects that overtook their causes stay before them
    CAUSAL = "causal"  # causes first: by the number of messages in their past
    WHOLE = "whole"  # as they arrived, and the receiver forwards when it has taken in the whole packet


@dataclass(frozen=True)
class CausalParameters:
    aggregation: Aggregation = parameter(
        Aggregation.ON, "off, on, or riding: unrelated messages join a postponed packet"
    )
    tree: Tree = parameter(Tree.SOURCE, "source: a tree per publisher; single: that of node 0")
    order: PacketOrder = parameter(
        PacketOrder.ARRIVAL, "of the messages in a packet: arrival, causal, or whole packets"
    )
    mtu: int = parameter(1500, "bytes per packet at most, header included", unit="bytes")

    def __post_init__(self) -> None:
        check_mtu(self.mtu)


class Held:
    """A received message on its way to the children."""

    __slots__ = ("arrival", "blocked", "height", "message", "vector")

    def __init__(self, message: CausalMessage, height: int, arrival: int) -> None:
        self.message = message
        self.height = height  # how many children it is for
        self.blocked = height  # the first so many have not got it
        self.arrival = arrival
        self.vector: Vector = ()  # known when the publisher's previous message is


class Group:
    """All there is about one topic at one node."""

    def __init__(self, topic: str, node: NodeId, dimension: int, incarnation: Incarnation, p: CausalParameters) -> None:
        self.topic = topic
        self.node = node
        self.dimension = dimension
        self.parameters = p
        size = 1 << dimension
        self.neighbours = children(node, dimension, (1 << size) - 1)
        self.delivery = CausalDelivery(topic, node, size, incarnation)
        self.seen = zero(size)
        self.vectors: dict[NodeId, Vector] = {}  # of each source's message number `seen`
        self.early: dict[NodeId, dict[Counter, Held]] = {}  # received before their publisher's previous message
        self.postponed: PendingBuffer[NodeId, Held] = PendingBuffer()
        self.arrivals = 0
        self.postponed_for = [0] * dimension  # per child, how many messages
        self.riders: list[list[CausalMessage]] = [[] for _ in range(dimension)]

    def height(self, source: NodeId) -> int:
        """How many children this node has in the tree of that source's messages: the neighbours 0 … height − 1."""
        difference = self.node ^ (source if self.parameters.tree is Tree.SOURCE else ROOT)
        return (difference & -difference).bit_length() - 1 if difference else self.dimension

    # Broadcast

    def broadcast(self, payload: bytes, effects: Effects) -> None:
        message = self.delivery.publish(payload, effects)
        # DEVIATION causal-aggregation algorithm 2, line 8: on the single tree an own message counts as received when
        # it comes back down, because that is when this node forwards it.
        if self.parameters.tree is Tree.SINGLE and self.node != ROOT:
            effects.append(Send((ROOT,), CausalPacket(self.topic, (message,))))
            return
        self.seen[self.node] = message.message.counter
        self._emit([[message] for _ in self.neighbours], [False] * self.dimension, None, effects)

    # Reception

    def receive(self, packet: CausalPacket, effects: Effects) -> None:
        readable: list[Held] = []
        whole: list[Held] = []
        for message in packet.messages:
            source, _, counter = message.message
            if counter <= self.seen[source] or counter in self.early.get(source, ()):
                effects.append(Observe("discard", self.topic, message.message, detail="duplicate"))
                continue
            self.arrivals += 1
            held = self.early.setdefault(source, {})[counter] = Held(message, self.height(source), self.arrivals)
            if self.parameters.aggregation is Aggregation.OFF:
                self._forward_at_once(held, packet, effects)
            # DEVIATION causal-aggregation algorithm 2, lines 17-22: forwarding follows the loop that advances `seen`;
            # inside it, as indented in print, a message that closes a gap would be sent once per step.
            fresh = self._advance(source)
            readable += fresh
            if self.parameters.order is PacketOrder.WHOLE:
                whole += fresh
            elif fresh and self.parameters.aggregation is not Aggregation.OFF:
                self._forward(fresh, packet, effects)
        if whole and self.parameters.aggregation is not Aggregation.OFF:
            self._forward(whole, packet, effects)
        self.delivery.receive([held.message for held in readable], effects)

    def _advance(self, source: NodeId) -> list[Held]:
        """Raise `seen` over what is there without a gap; the messages that became readable by it."""
        early, fresh = self.early[source], []
        while (held := early.pop(self.seen[source] + 1, None)) is not None:
            self.seen[source] += 1
            held.vector = self.vectors[source] = rebuild(self.vectors.get(source, ()), held.message.changed)
            fresh.append(held)
        if not early:
            del self.early[source]
        return fresh

    # Forwarding

    def _forward_at_once(self, held: Held, packet: CausalPacket, effects: Effects) -> None:
        peers = self.neighbours[: held.height]
        held.blocked = 0
        if peers:
            whole = packet if len(packet.messages) == 1 else CausalPacket(self.topic, (held.message,))
            effects.append(Send(peers, whole))

    def _forward(self, fresh: list[Held], cause: CausalPacket, effects: Effects) -> None:
        """Send each child what the arrival of `fresh` made complete for it: the aggregate."""
        batch = [(self._rank(held), False, held) for held in fresh]
        for source in dict.fromkeys(held.message.message.source for held in fresh):
            batch += [(self._rank(held), True, held) for held in self.postponed.release(source, self.seen[source])]
        batch.sort()
        aggregates: list[list[CausalMessage]] = [[] for _ in self.neighbours]
        waited = [False] * self.dimension
        for _, late, held in batch:
            before, held.blocked = held.blocked, self._blocked(held)
            for c in range(held.blocked, before):
                aggregates[c].append(held.message)
                waited[c] |= late
            self._count_postponed(held.blocked, before, late)
        self._emit(aggregates, waited, cause, effects)

    def _rank(self, held: Held) -> tuple[int, MessageId]:
        """Where in a packet; unique, because ids are."""
        message = held.message.message
        if self.parameters.order is PacketOrder.CAUSAL:
            return sum(counter for _, counter in held.vector) + message.counter, message
        return held.arrival, message

    def _blocked(self, held: Held) -> int:
        """To how many children the message is postponed; it is set to wait for a missing one of the highest level."""
        level, missing = 0, (-1, 0)
        seen = self.seen
        for source, counter in held.vector:
            if counter > seen[source] and (height := self.height(source)) > level:
                level, missing = height, (source, counter)
        level = min(level, held.blocked)
        if level:
            self.postponed.hold(*missing, held)
        return level

    def _count_postponed(self, now: int, before: int, late: bool) -> None:
        """A late message no longer waits for the children now … before − 1; a new one waits for 0 … now − 1."""
        for c in range(now, before) if late else range(now):
            self.postponed_for[c] += -1 if late else 1

    def _emit(
        self,
        aggregates: Sequence[list[CausalMessage]],
        waited: Sequence[bool],
        cause: CausalPacket | None,
        effects: Effects,
    ) -> None:
        """One aggregate per child, cut at the MTU; children with equal ones share the packets."""
        riding = self.parameters.aggregation is Aggregation.RIDING
        last: list[CausalMessage] = []
        packets: list[CausalPacket] = []
        for c, aggregate in enumerate(aggregates):
            if riding:
                aggregate = self._with_riders(c, aggregate, waited[c])
            if not aggregate:
                continue
            if aggregate != last:
                last = aggregate
                packets = [self._packet(part, cause) for part in fill(aggregate, self.parameters.mtu)]
            effects += [Send((self.neighbours[c],), packet) for packet in packets]

    def _with_riders(self, c: int, aggregate: list[CausalMessage], waited: bool) -> list[CausalMessage]:
        """What leaves for the child now. No cycle of waiting: whatever child c waits for still has to cross an
        edge of a higher dimension only, where riders wait for edges of a yet higher one."""
        if aggregate and not waited and self.postponed_for[c]:
            self.riders[c] += aggregate
            return []
        if not waited:
            return aggregate
        riders, self.riders[c] = self.riders[c], []
        return riders + aggregate

    def _packet(self, messages: tuple[CausalMessage, ...], cause: CausalPacket | None) -> CausalPacket:
        """A packet that goes on as it came is the same object: encoded once, and its hops are counted."""
        return cause if cause is not None and cause.messages == messages else CausalPacket(self.topic, messages)

    # For tests and people

    def pending(self) -> list[MessageId]:
        """Received and not delivered, by source and counter."""
        early = [held.message.message for early in self.early.values() for held in early.values()]
        return sorted(self.delivery.pending() + early)

    def invariants(self) -> None:
        entries = self.postponed.entries()
        for source, counter, held in entries:
            assert 0 < held.blocked <= held.height, f"{held.message.message} is postponed to nobody"
            assert self.seen[source] < counter, f"{held.message.message} waits for what arrived"
        for c in range(self.dimension):
            assert self.postponed_for[c] == sum(held.blocked > c for _, _, held in entries)
            assert self.postponed_for[c] or not self.riders[c], f"riders for child {c} with nobody to ride with"
        self.delivery.invariants()


class CausalBroadcast(Broadcast):
    """The machine of one node; a group per topic, each with its own clocks."""

    def __init__(
        self,
        node: NodeId,
        dimension: int,
        parameters: CausalParameters | None = None,
        *,
        incarnation: Incarnation = 0,
    ) -> None:
        self.node = node
        self.dimension = dimension
        self.parameters = parameters or CausalParameters()
        self.incarnation = incarnation
        self.groups: dict[str, Group] = {}

    def group(self, topic: str) -> Group:
        if topic not in self.groups:
            self.groups[topic] = Group(topic, self.node, self.dimension, self.incarnation, self.parameters)
        return self.groups[topic]

    def publish(self, now: float, topic: str, payloads: Sequence[bytes]) -> Effects:
        effects: Effects = []
        for payload in payloads:
            self.group(topic).broadcast(payload, effects)
        return effects

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        if type(packet) is not CausalPacket or not packet.messages:
            raise RemoteProtocolError(f"node {sender} sent a {type(packet).__name__} to a causal broadcast")
        check_names(sender, packet.messages, 1 << self.dimension)
        effects: Effects = []
        self.group(packet.topic).receive(packet, effects)
        return effects

    def invariants(self) -> None:
        for group in self.groups.values():
            group.invariants()

    def waiting(self) -> list[str]:
        return [f"{group.topic}: {message} held" for group in self.groups.values() for message in group.pending()]
