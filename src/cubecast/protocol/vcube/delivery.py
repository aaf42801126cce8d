"""The delivery rule of VCube-PS and its baselines: causal barriers, starting points guessed from first receptions.

A dependency (s, c) is satisfied when a message of s from c on was delivered, or when the first message ever received
from s is later than c: receptions from one source are in order, so the dependency was not for us.
"""

from enum import Enum

from cubecast.ids import Counter, MessageId, NodeId
from cubecast.protocol.contract import Cut, Deliver, Effects
from cubecast.protocol.order.barrier import CausalBarrier
from cubecast.protocol.order.pending import PendingBuffer
from cubecast.protocol.vcube.packets import Pub


class FirstReception(Enum):
    """What a dependency on a source from which nothing was received yet means; text and pseudo-code disagree."""

    BLOCK = "block"  # the pseudo-code: wait. Safe, but a newcomer may wait for ever.
    PASS = "pass"  # the text: do not wait. Live, but the dependency may arrive after its effect.


class Delivery:
    """One topic at one node."""

    __slots__ = ("barrier", "first_received", "held", "last_delivered", "latest", "mode", "topic")

    def __init__(self, topic: str, mode: FirstReception) -> None:
        self.topic = topic
        self.mode = mode
        self.barrier: CausalBarrier[MessageId] = CausalBarrier()
        self.held: PendingBuffer[NodeId, Pub] = PendingBuffer()
        self.last_delivered: dict[NodeId, MessageId] = {}
        self.latest: set[MessageId] = set()  # its values; most barriers are a subset of it, and that is one operation
        self.first_received: dict[NodeId, Counter] = {}

    def publish(self, message: MessageId) -> frozenset[MessageId]:
        """An own message is delivered here at once; returns the barrier it carries."""
        self.first_received.setdefault(message.source, message.counter)
        self._note(message)
        return self.barrier.publish(message)

    def receive(self, packet: Pub, effects: Effects) -> None:
        """Deliver this message and what it was holding back if its barrier is satisfied; otherwise hold it."""
        source, incarnation, counter = packet.message
        todo = [packet]
        if source not in self.first_received:
            self.first_received[source] = counter
            if counter > 1:
                effects.append(Cut(self.topic, MessageId(source, incarnation, counter - 1)))
                todo = [*self.held.release(source, counter - 1), packet]
        for candidate in todo:
            missing = None if candidate.barrier <= self.latest else self._missing(candidate.barrier)
            if missing is not None:
                self.held.hold(missing.source, missing.counter, candidate)
                continue
            message = candidate.message
            self._note(message)
            self.barrier.delivered(message, candidate.barrier)
            effects.append(Deliver(self.topic, message, candidate.payloads))
            if self.held:
                todo += self.held.release(message.source, message.counter)

    def _note(self, delivered: MessageId) -> None:
        before = self.last_delivered.get(delivered.source)
        if before is not None:
            self.latest.discard(before)
        self.last_delivered[delivered.source] = delivered
        self.latest.add(delivered)

    def _missing(self, barrier: frozenset[MessageId]) -> MessageId | None:
        """The first dependency that is neither delivered nor known never to come, or None."""
        first = self.first_received
        for dependency in sorted(barrier - self.latest):
            source, _, counter = dependency
            if self._last(source) >= counter or first.get(source, 0) > counter:
                continue
            if self.mode is FirstReception.PASS and source not in first:
                continue
            return dependency
        return None

    def _last(self, source: NodeId) -> Counter:
        last = self.last_delivered.get(source)
        return last.counter if last is not None else 0

    def leave(self) -> None:
        """Forget what was received. The barrier stays: that is what is published (defect V4)."""
        self.held.clear()
        self.first_received.clear()
        self.last_delivered.clear()
        self.latest.clear()

    def invariants(self) -> None:
        for source, counter, packet in self.held.entries():
            assert self._last(source) < counter, f"{packet.message} waits for what was delivered"

    def waiting(self) -> list[str]:
        return [
            f"{self.topic}: {packet.message} held, waits for message {counter} of {source}"
            for source, counter, packet in self.held.entries()
        ]
