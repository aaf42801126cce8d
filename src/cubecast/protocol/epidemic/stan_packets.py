"""What the members of StaN's overlays send each other."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from cubecast.errors import RemoteProtocolError
from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.contract import Packet

Ids = tuple[NodeId, ...]
MOST_TTL = 30
MOST_IDS = 4096
MOST_COUNTER = 1 << 48


@dataclass(slots=True)
class CollectWalk(Packet):
    """Under way among members; `ids` are those it met, and their neighbours."""

    source: NodeId
    topic: Topic
    ttl: int
    ids: Ids

    def mentions(self) -> Iterable[NodeId]:
        return (self.source, *self.ids)


@dataclass(slots=True)
class CollectReply(Packet):
    topic: Topic
    ids: Ids

    def mentions(self) -> Iterable[NodeId]:
        return self.ids


@dataclass(slots=True)
class OfTopic(Packet):
    topic: Topic


@dataclass(slots=True)
class Linked(OfTopic):
    """The receiver is in the sender's view from now on."""


@dataclass(slots=True)
class Unlinked(OfTopic):
    pass


@dataclass(slots=True)
class Pin(OfTopic):
    """Keep a link to the sender, besides the view: hardly anybody has one."""


@dataclass(slots=True)
class Unpin(OfTopic):
    pass


@dataclass(slots=True)
class Seek(OfTopic):
    """The sender looks for members."""


@dataclass(slots=True)
class Member(OfTopic):
    pass


@dataclass(slots=True)
class Gone(OfTopic):
    """The sender is no member."""


@dataclass(slots=True)
class Adopt(Packet):
    """Point to the sender, who is new: instead of another member, whom it is told of, or (not `give`) besides."""

    topic: Topic
    give: bool


@dataclass(slots=True)
class Given(Packet):
    topic: Topic
    member: NodeId

    def mentions(self) -> Iterable[NodeId]:
        return (self.member,)


@dataclass(slots=True)
class Flooded(Packet):
    topic: Topic
    message: MessageId
    payloads: tuple[bytes, ...]
    publication: ClassVar[bool] = True


PACKETS: tuple[type[Any], ...] = (
    *(CollectWalk, CollectReply, Linked, Unlinked, Pin, Unpin, Seek, Member, Gone, Adopt, Given, Flooded),
)


def check_packet(me: NodeId, packet: Any) -> None:
    """What no correct process sends is refused before anything changes."""
    if type(packet) not in PACKETS or not _is_right(me, packet):
        raise RemoteProtocolError(f"a {type(packet).__name__} that no member of an overlay sends")


def _is_right(me: NodeId, packet: Any) -> bool:
    match packet:
        case CollectWalk():
            return packet.source >= 0 and packet.source != me and 0 <= packet.ttl <= MOST_TTL and _ids(packet.ids)
        case CollectReply():
            return _ids(packet.ids)
        case Given():
            return bool(packet.member >= 0)
        case Flooded():
            source, incarnation, counter = packet.message
            named = source >= 0 and incarnation >= 0 and 1 <= counter < MOST_COUNTER
            return named and 0 < len(packet.payloads) < MOST_COUNTER
        case _:
            return True


def _ids(ids: Ids) -> bool:
    return len(ids) <= MOST_IDS and all(one >= 0 for one in ids)
