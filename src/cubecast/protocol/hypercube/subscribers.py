"""A node's view of one topic's subscribers, and the children it follows from.

Views of a settled group are equal everywhere, so thousands of simulated nodes share one `Roster` and keep only what
they learned since. Children are remembered per parent until the view changes.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import ClassVar, NamedTuple

from cubecast.errors import LocalProtocolError
from cubecast.ids import NodeId, Topic
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import Effects
from cubecast.protocol.hypercube.packets import Entry, Operation
from cubecast.protocol.hypercube.topology import children, cluster
from cubecast.protocol.masks import mask_of


class Roster:
    """A settled membership, shared and never changed."""

    __slots__ = ("entries", "mask")

    def __init__(self, nodes: Iterable[NodeId]) -> None:
        # Counter 0 is older than any operation a node performs later.
        self.entries: Mapping[NodeId, Entry] = {node: Entry(node, Operation.SUB, 0) for node in nodes}
        self.mask = mask_of(self.entries)


_NOBODY = Roster(())


class Awaited(NamedTuple):
    """Acknowledgements that are missing, and the parent, who is told after the last one; the root has none.

    The same for every message that comes from the same parent, so nothing is made or changed to count them.
    """

    parent: tuple[NodeId, ...]
    missing: int
    after_one: "Awaited | None"


class Place(NamedTuple):
    """A node's place in the trees in which it has a certain parent."""

    children: tuple[NodeId, ...]
    parent: tuple[NodeId, ...]
    awaited: Awaited | None


def _place(children: tuple[NodeId, ...], parent: tuple[NodeId, ...]) -> Place:
    awaited = None
    for missing in range(1, len(children) + 1):
        awaited = Awaited(parent, missing, awaited)
    return Place(children, parent, awaited)


class Subscribers:
    __slots__ = ("_base", "_learned", "dimension", "mask", "node", "places", "subscribed")

    def __init__(self, node: NodeId, dimension: int, base: Roster = _NOBODY) -> None:
        self.node = node
        self.dimension = dimension
        self._base = base.entries
        self._learned: dict[NodeId, Entry] = {}
        self.mask = base.mask
        self.subscribed = bool(base.mask >> node & 1)
        self.places: dict[NodeId | None, Place] = {}
        """By parent, as far as it was asked for."""

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
            self.places.clear()

    def place_below(self, parent: NodeId | None) -> Place:
        """This node's place in a tree of subscribers in which it received from `parent`; None: it is the root."""
        found = self.places.get(parent)
        if found is None:
            height = self.dimension if parent is None else cluster(self.node, parent) - 1
            children_here = children(self.node, height, self.mask)
            found = self.places[parent] = _place(children_here, () if parent is None else (parent,))
        return found

    def children_below(self, parent: NodeId | None) -> tuple[NodeId, ...]:
        return self.place_below(parent).children


# What protocols of a model without failures and without timers have to say about both: nothing happens.


class FaultFree(Handlers):
    __slots__ = ()
    sets_timers: ClassVar[bool] = False
    """A simulator may take a stretch of time at once (`sim.windows`)."""

    def on_start(self, now: float) -> Effects:
        return []

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        raise LocalProtocolError(f"{type(self).__name__} sets no timers, so {timer!r} is not one of its own")

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        return []

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        return []


class Broadcast(FaultFree):
    """Besides, everybody gets everything."""

    __slots__ = ()

    def subscribe(self, now: float, topic: Topic) -> Effects:
        raise LocalProtocolError("a broadcast reaches every node from the start; there is nothing to subscribe to")

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        raise LocalProtocolError("a broadcast reaches every node; nobody can leave it")
