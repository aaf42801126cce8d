"""Timer bundling (Rodrigues et al., LADC 2018): what goes to the same neighbour within some time shares a packet.

A node keeps a buffer per neighbour. What it has to forward to it, messages and acknowledgements alike, is put there;
the first entry starts a timer, and the buffer leaves as one packet when the timer fires or when the next entry would
not fit. Acknowledgements ascend the tree of a message: a leaf sends one at once, an inner node when all its children
have. It saves packets among unrelated messages too, and pays with the time messages wait.

Delivery is in causal order, as in `causal_aggregation`, which it is compared with.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cubecast.errors import RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId
from cubecast.protocol.effects import Acknowledged, CancelTimer, Effect, Effects, Observe, Send, SetTimer
from cubecast.protocol.hypercube.causal_packets import (
    ACKNOWLEDGEMENT_BYTES,
    HEADER_BYTES,
    AckBundle,
    Bundle,
    CausalDelivery,
    CausalMessage,
    check_mtu,
    check_names,
)
from cubecast.protocol.hypercube.subscribers import Broadcast
from cubecast.protocol.hypercube.topology import children
from cubecast.protocol.parameters import check_parameters, parameter


@dataclass(frozen=True)
class BundlingParameters:
    wait: float = parameter(10.0, "how long the first entry of a buffer waits for others", least=0, unit="time")
    mtu: int = parameter(1500, "bytes per packet at most, header included", unit="bytes")

    def __post_init__(self) -> None:
        check_parameters(self)
        check_mtu(self.mtu)


class Buffer:
    """What waits for one neighbour."""

    __slots__ = ("acknowledged", "messages", "size")

    def __init__(self) -> None:
        self.messages: list[CausalMessage] = []
        self.acknowledged: list[MessageId] = []
        self.size = HEADER_BYTES


@dataclass(slots=True)
class Wave:
    """Acknowledgements of one message on their way up."""

    parent: NodeId | None
    missing: int


class BundledTopic:
    def __init__(self, topic: str, node: NodeId, dimension: int, incarnation: Incarnation) -> None:
        size = 1 << dimension
        self.topic = topic
        self.delivery = CausalDelivery(topic, node, size, incarnation)
        self.neighbours = children(node, dimension, (1 << size) - 1)
        self.buffers: dict[NodeId, Buffer] = {}
        self.waves: dict[MessageId, Wave] = {}
        self.received: set[MessageId] = set()
        self.complete: set[Counter] = set()  # own messages everyone has, beyond `acknowledged`
        self.acknowledged: Counter = 0


class TimerBundling(Broadcast):
    """The machine of one node."""

    sets_timers: ClassVar[bool] = True

    def __init__(
        self,
        node: NodeId,
        dimension: int,
        parameters: BundlingParameters | None = None,
        *,
        incarnation: Incarnation = 0,
    ) -> None:
        self.node = node
        self.dimension = dimension
        self.parameters = parameters or BundlingParameters()
        self.incarnation = incarnation
        self.topics: dict[str, BundledTopic] = {}

    def _topic(self, name: str) -> BundledTopic:
        if name not in self.topics:
            self.topics[name] = BundledTopic(name, self.node, self.dimension, self.incarnation)
        return self.topics[name]

    def publish(self, now: float, topic: str, payloads: Sequence[bytes]) -> Effects:
        state, effects = self._topic(topic), list[Effect]()
        for payload in payloads:
            message = state.delivery.publish(payload, effects)
            self._forward(now, state, message, None, state.neighbours, effects)
        return effects

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        if type(packet) is Bundle:
            return self._on_bundle(now, sender, packet)
        if type(packet) is AckBundle:
            effects: Effects = []
            self._on_acknowledged(now, self._topic(packet.topic), packet.acknowledged, effects)
            return effects
        raise RemoteProtocolError(f"node {sender} sent a {type(packet).__name__} to a bundling broadcast")

    def _on_bundle(self, now: float, sender: NodeId, packet: Bundle) -> Effects:
        check_names(sender, packet.messages, 1 << self.dimension)
        state, effects = self._topic(packet.topic), list[Effect]()
        fresh = []
        for message in packet.messages:
            if message.message in state.received:
                effects.append(Observe("discard", packet.topic, message.message, sender, "duplicate"))
                continue
            state.received.add(message.message)
            fresh.append(message)
            difference = self.node ^ message.message.source
            height = (difference & -difference).bit_length() - 1
            self._forward(now, state, message, sender, state.neighbours[:height], effects)
        self._on_acknowledged(now, state, packet.acknowledged, effects)
        state.delivery.receive(fresh, effects)
        return effects

    def _forward(
        self,
        now: float,
        state: BundledTopic,
        message: CausalMessage,
        parent: NodeId | None,
        peers: tuple[NodeId, ...],
        effects: Effects,
    ) -> None:
        for peer in peers:
            self._buffer(now, state, peer, message.size, effects).messages.append(message)
        if peers:
            state.waves[message.message] = Wave(parent, len(peers))
        elif parent is not None:
            self._acknowledge(now, state, parent, message.message, effects)

    def _on_acknowledged(
        self, now: float, state: BundledTopic, acknowledged: tuple[MessageId, ...], effects: Effects
    ) -> None:
        for message in acknowledged:
            wave = state.waves.get(message)
            if wave is None:
                effects.append(Observe("discard", state.topic, detail=f"acknowledgement of {message}"))
                continue
            wave.missing -= 1
            if wave.missing:
                continue
            del state.waves[message]
            if wave.parent is None:
                self._complete(state, message.counter, effects)
            else:
                self._acknowledge(now, state, wave.parent, message, effects)

    def _acknowledge(
        self, now: float, state: BundledTopic, parent: NodeId, message: MessageId, effects: Effects
    ) -> None:
        self._buffer(now, state, parent, ACKNOWLEDGEMENT_BYTES, effects).acknowledged.append(message)

    def _complete(self, state: BundledTopic, counter: Counter, effects: Effects) -> None:
        """Own messages are reported in order, so a later one that is complete earlier waits."""
        state.complete.add(counter)
        before = state.acknowledged
        while state.acknowledged + 1 in state.complete:
            state.acknowledged += 1
            state.complete.remove(state.acknowledged)
        if state.acknowledged > before:
            effects.append(Acknowledged(state.topic, state.acknowledged))

    # Buffers

    def _buffer(self, now: float, state: BundledTopic, peer: NodeId, size: int, effects: Effects) -> Buffer:
        """The buffer with room for an entry of that size."""
        buffer = state.buffers.get(peer)
        if buffer is not None and buffer.size + size > self.parameters.mtu:
            effects.append(CancelTimer((state.topic, peer)))
            self._flush(state, peer, effects)
            buffer = None
        if buffer is None:
            buffer = state.buffers[peer] = Buffer()
            effects.append(SetTimer((state.topic, peer), now + self.parameters.wait))
        buffer.size += size
        return buffer

    def _flush(self, state: BundledTopic, peer: NodeId, effects: Effects) -> None:
        buffer = state.buffers.pop(peer)
        acknowledged = tuple(buffer.acknowledged)
        packet: Bundle | AckBundle = AckBundle(state.topic, acknowledged)
        if buffer.messages:
            packet = Bundle(state.topic, tuple(buffer.messages), acknowledged)
        effects.append(Send((peer,), packet))

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        assert isinstance(timer, tuple)
        topic, peer = timer
        effects: Effects = []
        self._flush(self._topic(topic), peer, effects)
        return effects

    # The rest of a machine

    def invariants(self) -> None:
        for state in self.topics.values():
            state.delivery.invariants()
            for wave in state.waves.values():
                assert wave.missing > 0
            for buffer in state.buffers.values():
                assert buffer.messages or buffer.acknowledged

    def waiting(self) -> list[str]:
        lines = []
        for state in self.topics.values():
            lines += [f"{state.topic}: {message} held" for message in state.delivery.pending()]
            lines += [f"{state.topic}: {message} not acknowledged" for message in state.waves]
        return lines
