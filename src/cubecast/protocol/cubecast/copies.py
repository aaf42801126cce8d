"""A publication a node keeps until it is stable: whom it is for, and how far the node is with handing it on.

Destinations are members, not nodes.
"""

from typing import Final

from cubecast.ids import Counter, Incarnation, NodeId
from cubecast.protocol.cubecast.publication_packets import Direct, Publication
from cubecast.protocol.cubecast.vocabulary import Bitmap, Life, Member, bitmap, mask_from

# Whom a publication is for: members, not nodes. Fixed by the source, carried whole, cut into blocks by forwarders.
#
# Follows decision 0010.

Epoch = tuple[Incarnation, int]
FIRST_EPOCH: Final[Epoch] = (0, 1)


class Destinations:
    """A set of members, at most one per node: a mask, and the epochs that are not the first one. Never changed."""

    __slots__ = ("_epochs", "epochs", "later", "mask", "members")

    def __init__(self, mask: int, epochs: tuple[Member, ...], members: Bitmap | None = None) -> None:
        self.mask = mask
        self.members = bitmap(mask) if members is None else members
        self.epochs = epochs
        self._epochs: dict[NodeId, Epoch] = {node: (incarnation, number) for node, incarnation, number in epochs}
        self.later = 0
        """Mask of those not in their first epoch."""
        for node in self._epochs:
            self.later |= 1 << node

    @classmethod
    def carried(cls, members: Bitmap, epochs: tuple[Member, ...]) -> "Destinations":
        return cls(mask_from(members), epochs, members)

    def epoch(self, node: NodeId) -> Epoch:
        """Of a node that is in the mask."""
        return self._epochs[node] if self.later >> node & 1 else FIRST_EPOCH

    def without(self, other: "Destinations") -> int:
        """Mask of the nodes whose member is here and not in the other."""
        mask = self.mask & ~other.mask
        if self.epochs != other.epochs:
            for node in {**self._epochs, **other._epochs}:
                if self.mask >> node & 1 and self.epoch(node) != other.epoch(node):
                    mask |= 1 << node
        return mask

    def keeping(self, mask: int) -> "Destinations":
        return Destinations(self.mask & mask, tuple(one for one in self.epochs if mask >> one.node & 1))


NOBODY: Final = Destinations(0, ())


# A publication a node keeps until it is stable, and how far it is with handing it on.

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
