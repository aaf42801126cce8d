"""What HyParView's processes send each other. Ids are those of processes the receiver may have to find."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cubecast.ids import NodeId
from cubecast.protocol.contract import Packet

Ids = tuple[NodeId, ...]


@dataclass(slots=True)
class Join(Packet):
    """The sender is new."""


@dataclass(slots=True)
class Accept(Packet):
    """The sender keeps the link; it exists from here on."""


@dataclass(slots=True)
class Neighbour(Packet):
    """The sender wants a link; `high`: it has none."""

    high: bool


@dataclass(slots=True)
class _Offers(Packet):
    """Ids that the receiver may try instead."""

    ids: Ids

    def mentions(self) -> Iterable[NodeId]:
        return self.ids


@dataclass(slots=True)
class Refuse(_Offers):
    pass


@dataclass(slots=True)
class Disconnect(_Offers):
    pass


@dataclass(slots=True)
class ForwardJoin(Packet):
    newcomer: NodeId
    ttl: int

    def mentions(self) -> Iterable[NodeId]:
        return (self.newcomer,)


@dataclass(slots=True)
class Shuffle(Packet):
    origin: NodeId
    ids: Ids
    ttl: int

    def mentions(self) -> Iterable[NodeId]:
        return (self.origin, *self.ids)


@dataclass(slots=True)
class ShuffleReply(_Offers):
    pass


@dataclass(slots=True)
class Probe(_Offers):
    """To a contact, now and then: does it belong to the same overlay? With what flows have, now and two ticks ago."""

    have: dict[str, int]
    before: dict[str, int]
    answer: bool


MEMBERSHIP_PACKETS: tuple[type[Any], ...] = (
    *(Join, Accept, Neighbour, Refuse, Disconnect, ForwardJoin, Shuffle, ShuffleReply, Probe),
)
