"""Birman's delivery rule for messages with compressed vector clocks: stamps what is published, orders what arrives."""

from cubecast.ids import Counter, Incarnation, MessageId, NodeId
from cubecast.protocol.effects import Deliver, Effects, Published
from cubecast.protocol.hypercube.causal_packets import CausalMessage
from cubecast.protocol.order.pending import PendingBuffer
from cubecast.protocol.order.vector_clock import zero


class CausalDelivery:
    """One topic at one node. `clock[l]`: how many messages of l were delivered here."""

    __slots__ = ("changed", "clock", "held", "incarnation", "node", "topic")

    def __init__(self, topic: str, node: NodeId, size: int, incarnation: Incarnation) -> None:
        self.topic = topic
        self.node = node
        self.incarnation = incarnation
        self.clock = zero(size)
        self.changed: dict[NodeId, None] = {}  # entries of the clock since the last own broadcast
        self.held: PendingBuffer[NodeId, CausalMessage] = PendingBuffer()

    def publish(self, payload: bytes, effects: Effects) -> CausalMessage:
        """An own message, delivered here at once."""
        clock, node = self.clock, self.node
        clock[node] += 1
        changed = tuple((k, clock[k]) for k in sorted(self.changed))
        self.changed.clear()
        message = CausalMessage(MessageId(node, self.incarnation, clock[node]), payload, changed)
        dependencies = tuple(MessageId(k, 0, value) for k, value in changed)
        effects.append(Published(self.topic, clock[node], 1, dependencies, (payload,)))
        effects.append(Deliver(self.topic, message.message, (payload,)))
        return message

    def receive(self, messages: list[CausalMessage], effects: Effects) -> None:
        """Deliver these, and what they were holding back, as far as causes are here; hold the rest."""
        clock, worklist = self.clock, list(messages)
        for message in worklist:
            source, _, counter = message.message
            if counter <= clock[source]:
                continue  # an own message on its way down a tree it was handed to
            missing = self._missing(message)
            if missing is not None:
                self.held.hold(*missing, message)
                continue
            clock[source] = counter
            self.changed[source] = None
            effects.append(Deliver(self.topic, message.message, (message.payload,)))
            if self.held:
                worklist += self.held.release(source, counter)

    def _missing(self, message: CausalMessage) -> tuple[NodeId, Counter] | None:
        """The first dependency not delivered, or None. The changed entries tell, once the previous message is."""
        source, _, counter = message.message
        if self.clock[source] < counter - 1:
            return source, counter - 1
        for k, value in message.changed:
            if value > self.clock[k]:
                return k, value
        return None

    def pending(self) -> list[MessageId]:
        return sorted(message.message for _, _, message in self.held.entries())

    def invariants(self) -> None:
        for source, counter, message in self.held.entries():
            assert self.clock[source] < counter, f"{message.message} waits for what was delivered"
