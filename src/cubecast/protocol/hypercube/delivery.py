"""The delivery rule of VCube-PS and its baselines: causal barriers, starting points guessed from first receptions.

A dependency (s, c) is satisfied when a message of s from c on was delivered, or when the first message ever received
from s is later than c: receptions from one source are in order, so the dependency was not for us.
"""

from enum import Enum

from cubecast.ids import Counter, Incarnation, MessageId, NodeId
from cubecast.protocol.effects import Cut, Effects
from cubecast.protocol.hypercube.packets import Pub
from cubecast.protocol.masks import ids_of
from cubecast.protocol.order import CausalBarrier, Groups, PendingBuffer


class FirstReception(Enum):
    """What a dependency on a source from which nothing was received yet means; text and pseudo-code disagree."""

    BLOCK = "block"  # the pseudo-code: wait. Safe, but a newcomer may wait for ever.
    PASS = "pass"  # the text: do not wait. Live, but the dependency may arrive after its effect.


class Delivery:
    """One topic at one node.

    | paper                    | here                                                                       |
    |--------------------------|----------------------------------------------------------------------------|
    | causal_barrier           | `barrier`                                                                  |
    | not_delvs, msgs          | `held`, indexed by the missing dependency                                  |
    | last_delvs (also: delv)  | `latest`, by counter, as masks of sources; `last_delivered` beyond the first |
    | first_rec                | `heard` (from whom anything), `first_received` (where it was not the first) |
    """

    __slots__ = (
        *("barrier", "first_received", "forgotten", "heard", "held", "incarnations"),
        *("_unheard_pass", "last_delivered", "latest", "settled", "topic"),
    )

    def __init__(self, topic: str, mode: FirstReception) -> None:
        self.topic = topic
        self._unheard_pass = mode is FirstReception.PASS
        self.barrier = CausalBarrier()
        self.held: PendingBuffer[NodeId, Pub] = PendingBuffer()
        self.latest: dict[Counter, int] = {}
        # Sources that are still at their first message are not listed: with thousands of publishers of one message each
        # the masks are all there is, and a node's state fits the processor's cache.
        self.last_delivered: dict[NodeId, Counter] = {}
        self.heard = 0
        self.settled = 0  # sources whose every message is for us, so that no first reception has to tell
        self.forgotten = 0  # sources that left: their next message counts as the first one again
        self.first_received: dict[NodeId, Counter] = {}
        self.incarnations: dict[NodeId, Incarnation] = {}  # of restarted sources; for the trace, no rule looks at it

    def publish(self, message: MessageId, effects: Effects) -> tuple[MessageId, ...]:
        """An own message is delivered here at once; returns the barrier it carries."""
        bit = 1 << message.source
        if not self.heard & bit:
            self._first_reception(bit, message, effects)
        self._note(message.source, bit, message.counter)
        known = self.incarnations
        stamped = self.barrier.publish(bit, message.counter)
        return tuple(sorted(MessageId(s, known.get(s, 0), c) for c, mask in stamped for s in ids_of(mask)))

    def passes(self, packet: Pub) -> bool:
        """Whether the message is delivered as it comes and nothing else happens, which is then noted; most are.

        False changes nothing: `receive` has to look closer.
        """
        if packet.source in self.held.waiting:
            return False
        needed, bit = packet.needed_firsts, packet.bit
        if needed is None:
            return self._passes_later(packet)
        delivered = self.latest.get(1, 0)
        if delivered & needed != needed:
            return False
        self.heard |= bit
        self.latest[1] = delivered | bit
        self.barrier.first_delivered(bit, needed)
        return True

    def _passes_later(self, packet: Pub) -> bool:
        """The same for any message but a first one that depends on nothing but first ones."""
        if (not packet.opens and not self.heard & packet.bit) or self._missing(packet.groups) is not None:
            return False
        self.heard |= packet.bit
        self._delivered(packet)
        return True

    def receive(self, packet: Pub, effects: Effects) -> None:
        """Deliver this message and what it was holding back if its barrier is satisfied; otherwise hold it."""
        if self.passes(packet):
            effects.append(packet.delivery)
            return
        waiting, worklist = self.held.waiting, [packet]
        if packet.opens:
            self.heard |= packet.bit
        elif not self.heard & packet.bit:
            worklist = [*self._first_reception(packet.bit, packet.message, effects), packet]
        for candidate in worklist:
            missing = self._missing(candidate.groups)
            if missing is not None:
                self.held.hold(*missing, candidate)
                continue
            self._delivered(candidate)
            effects.append(candidate.delivery)
            if waiting and candidate.source in waiting:
                worklist += self.held.release(candidate.source, candidate.counter)

    def _delivered(self, packet: Pub) -> None:
        self._note(packet.source, packet.bit, packet.counter)
        self.barrier.delivered(packet.bit, packet.counter, packet.groups)

    def forget_reception(self, source: NodeId) -> None:
        """The source left: its next message counts as the first one."""
        self.forgotten |= self.heard & 1 << source
        self.heard &= ~(1 << source)
        self.first_received.pop(source, None)

    def leave(self) -> None:
        """Forget what was received. The barrier stays: that is what is published (defect V4)."""
        self.held.clear()
        self.heard = self.settled = self.forgotten = 0
        self.first_received.clear()
        self.last_delivered.clear()
        self.latest.clear()

    def _first_reception(self, bit: int, message: MessageId, effects: Effects) -> list[Pub]:
        """What waited for earlier messages of this source, which are now known not to be for us."""
        source, incarnation, counter = message
        self.heard |= bit
        if incarnation:
            self.incarnations[source] = incarnation
        if counter == 1 or self.settled & bit:
            return []
        self.first_received[source] = counter
        if not self.forgotten & bit:  # the starting cut stays what it was when the source was first heard
            effects.append(Cut(self.topic, MessageId(source, incarnation, counter - 1)))
        return self.held.release(source, counter - 1)

    def _note(self, source: NodeId, bit: int, counter: Counter) -> None:
        """Delivered: move the source to its new counter."""
        latest = self.latest
        if counter > 1:
            before = self.last_delivered.get(source, 1)
            mask = latest.get(before, 0)
            if mask & bit:
                latest[before] = mask ^ bit
                if mask == bit:
                    del latest[before]
            self.last_delivered[source] = counter
        latest[counter] = latest.get(counter, 0) | bit

    def _last(self, source: NodeId) -> Counter:
        return self.last_delivered.get(source) or self.latest.get(1, 0) >> source & 1

    def _missing(self, barrier: Groups) -> tuple[NodeId, Counter] | None:
        """The first dependency that is neither delivered nor known never to come, or None."""
        latest = self.latest
        for counter, sources in barrier:
            absent = sources & latest.get(counter, 0) ^ sources  # negative integers are slow, so no complement
            while absent:
                up_to_lowest = absent ^ absent - 1
                source = up_to_lowest.bit_length() - 1
                if not self._passed(source, counter):
                    return source, counter
                absent ^= absent & up_to_lowest
        return None

    def _passed(self, source: NodeId, counter: Counter) -> bool:
        """Whether a dependency that is not the latest of its source is satisfied all the same."""
        if self.last_delivered.get(source, 0) > counter or self.first_received.get(source, 0) > counter:
            return True
        return self._unheard_pass and not self.heard >> source & 1

    def invariants(self) -> None:
        for source, counter, packet in self.held.entries():
            assert self._last(source) < counter, f"{packet.message} waits for what was delivered"
        beyond_first = sum(mask.bit_count() for counter, mask in self.latest.items() if counter > 1)
        assert beyond_first == len(self.last_delivered), "last_delivered and latest disagree"

    def waiting(self) -> list[str]:
        return [
            f"{self.topic}: {packet.message} held, waits for message {counter} of {source}"
            for source, counter, packet in self.held.entries()
        ]
