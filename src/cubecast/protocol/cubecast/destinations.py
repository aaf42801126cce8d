"""Whom a publication is for: members, not nodes. Fixed by the source, carried whole, cut into blocks by forwarders.

Follows decision 0010.
"""

from typing import Final

from cubecast.ids import Incarnation, NodeId
from cubecast.protocol.cubecast.vocabulary import Bitmap, Member, bitmap, mask_from

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
