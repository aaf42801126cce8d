"""What causal broadcast sends: messages stamped with compressed vector clocks, several to a packet, sized to the byte.

Birman's compression: a message carries only the entries of its publisher's clock that changed since that publisher's
previous broadcast. A node that has the previous message can rebuild the whole vector; the publisher's own entry is the
message's counter and always counts as changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from cubecast.errors import BadInput, RemoteProtocolError
from cubecast.ids import Counter, MessageId, NodeId
from cubecast.protocol.contract import Carried, Packet

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
