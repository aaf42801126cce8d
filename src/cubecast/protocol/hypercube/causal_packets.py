"""What causal broadcast sends: messages stamped with compressed vector clocks, several to a packet, sized to the byte.

Birman's compression: a message carries only the entries of its publisher's clock that changed since that publisher's
previous broadcast. A node that has the previous message can rebuild the whole vector; the publisher's own entry is the
message's counter and always counts as changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from cubecast.errors import BadInput, RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId
from cubecast.protocol.contract import Carried, Packet
from cubecast.protocol.effects import Deliver, Effects, Published
from cubecast.protocol.order import PendingBuffer, zero

HEADER_BYTES = 20
SOURCE_BYTES = 2
ENTRY_BYTES = 4
ACKNOWLEDGEMENT_BYTES = SOURCE_BYTES + ENTRY_BYTES

Vector: TypeAlias = tuple[tuple[NodeId, Counter], ...]
"""The entries of a vector clock that are not zero, ascending, without the publisher's own."""


class CausalMessage(NamedTuple):
    message: MessageId
    payload: bytes
    changed: Vector

    @property
    def size(self) -> int:
        """Bytes in a packet: payload, source, and the changed entries, the own one among them."""
        return len(self.payload) + SOURCE_BYTES + ENTRY_BYTES * (len(self.changed) + 1)


@dataclass(slots=True)
class CausalPacket(Packet):
    topic: str
    messages: tuple[CausalMessage, ...]
    publication: ClassVar[bool] = True
    bundle: ClassVar[bool] = True

    def carried(self) -> list[Carried]:
        return [Carried(self.topic, each.message, 1) for each in self.messages]

    @property
    def size(self) -> int:
        return HEADER_BYTES + sum(each.size for each in self.messages)


def rebuild(previous: Vector, changed: Vector) -> Vector:
    """The whole vector of a message from that of its publisher's previous one. Shares what it can: most are firsts."""
    if not previous:
        return changed
    return tuple(sorted({**dict(previous), **dict(changed)}.items()))


def check_mtu(mtu: int) -> None:
    if mtu <= HEADER_BYTES:
        raise BadInput(f"an MTU of {mtu} bytes leaves no room after the {HEADER_BYTES}-byte header")


def check_names(sender: NodeId, messages: Sequence[CausalMessage], size: int) -> None:
    """Refuse messages that name nodes which a cube of this size does not have."""
    for message in messages:
        named = (message.message.source, *(k for k, _ in message.changed))
        if min(named) < 0 or max(named) >= size:
            raise RemoteProtocolError(f"node {sender} sent {message.message} that names nodes outside the cube")


def fill(messages: Sequence[CausalMessage], mtu: int) -> Iterator[tuple[CausalMessage, ...]]:
    """Cut a sequence into packets: when the next message would not fit, the packet is closed."""
    start, size = 0, HEADER_BYTES
    for index, message in enumerate(messages):
        if size + message.size > mtu and index > start:
            yield tuple(messages[start:index])
            start, size = index, HEADER_BYTES
        size += message.size
    yield tuple(messages[start:])


@dataclass(slots=True)
class Bundle(Packet):
    """Messages with acknowledgements riding along."""

    topic: str
    messages: tuple[CausalMessage, ...]
    acknowledged: tuple[MessageId, ...]
    publication: ClassVar[bool] = True
    bundle: ClassVar[bool] = True

    def carried(self) -> list[Carried]:
        return [Carried(self.topic, each.message, 1) for each in self.messages]


@dataclass(slots=True)
class AckBundle(Packet):
    """Acknowledgements only."""

    topic: str
    acknowledged: tuple[MessageId, ...]


# Birman's delivery rule for messages with compressed vector clocks: stamps what is published, orders what arrives.


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
