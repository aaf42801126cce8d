"""A publication a node keeps until it is stable, and how far it is with handing it on."""

from typing import Final

from cubecast.ids import Counter, NodeId
from cubecast.protocol.cubecast.destinations import Destinations
from cubecast.protocol.cubecast.publication_packets import Direct, Publication
from cubecast.protocol.cubecast.vocabulary import Life

EVERYBODY: Final = -1  # as a mask


class Copy:
    """A publication this node keeps."""

    __slots__ = (
        *("_tried", "age", "covered", "destinations", "duty", "first", "is_direct", "last", "packet", "parents"),
        *("postponed", "source"),
    )

    def __init__(self, source: Life, packet: Publication, destinations: Destinations, covered: int) -> None:
        self.packet = packet
        self.destinations = destinations
        self.source = source
        self.first: Counter = packet.message[2]
        self.last: Counter = self.first + len(packet.payloads) - 1
        self.is_direct = type(packet) is Direct
        self.covered = covered
        """Mask of the destinations known to have it."""
        self.duty = 0
        """Mask of the ids this node answers for."""
        self.parents: dict[NodeId, int] = {}
        """Who waits for our acknowledgement, and for which ids."""
        self.postponed = 0
        """Mask of the ids whose turn is put off until something it depends on is here."""
        self._tried = 0
        self.age = 0

    def orphaned(self) -> None:
        """Its source is faulty: whoever has it answers for everybody, and hands it on along trees."""
        self.duty = EVERYBODY
        if isinstance(self.packet, Direct):
            self.packet, self.is_direct = self.packet.handed_on(), False

    @property
    def tried(self) -> int:
        """Mask of the children that were sent it and have not answered."""
        return self._tried & ~self.covered

    def try_children(self, mask: int) -> None:
        self._tried |= mask
