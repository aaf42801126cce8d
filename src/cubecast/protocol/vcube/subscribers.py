"""A node's view of one topic's subscribers, and the children it follows from.

Views of a settled group are equal everywhere, so thousands of simulated nodes share one `Roster` and keep only what
they learned since. Children are remembered per height until the view changes.
"""

from collections.abc import Iterable, Mapping

from cubecast.ids import NodeId
from cubecast.protocol.vcube.packets import Entry, Operation
from cubecast.protocol.vcube.topology import children, mask_of


class Roster:
    """A settled membership, shared and never changed."""

    __slots__ = ("entries", "mask")

    def __init__(self, nodes: Iterable[NodeId]) -> None:
        # Counter 0 is older than any operation a node performs later.
        self.entries: Mapping[NodeId, Entry] = {node: Entry(node, Operation.SUB, 0) for node in nodes}
        self.mask = mask_of(self.entries)


_NOBODY = Roster(())


class Subscribers:
    __slots__ = ("_base", "_learned", "by_height", "mask", "node", "subscribed")

    def __init__(self, node: NodeId, dimension: int, base: Roster = _NOBODY) -> None:
        self.node = node
        self._base = base.entries
        self._learned: dict[NodeId, Entry] = {}
        self.mask = base.mask
        self.subscribed = bool(base.mask >> node & 1)
        self.by_height: list[tuple[NodeId, ...] | None] = [None] * (dimension + 1)
        """Children by height, as far as somebody asked."""

    def entry(self, node: NodeId) -> Entry | None:
        return self._learned.get(node) or self._base.get(node)

    def update(self, new: Entry) -> None:
        """Keep the newer of what is known and what is said."""
        known = self.entry(new.node)
        if known is not None and known.counter >= new.counter:
            return
        self._learned[new.node] = new
        bit = 1 << new.node
        mask = self.mask | bit if new.operation is Operation.SUB else self.mask & ~bit
        if mask != self.mask:
            self.mask = mask
            self.subscribed = bool(mask >> self.node & 1)
            self.by_height = [None] * len(self.by_height)

    def children(self, height: int) -> tuple[NodeId, ...]:
        """This node's children in a subtree of that height spanning the subscribers."""
        found = self.by_height[height]
        if found is None:
            found = self.by_height[height] = children(self.node, height, self.mask)
        return found
