"""Who lives where: one place per id, the newest incarnation wins, and nobody takes an id that somebody living holds."""

from collections.abc import Callable, Iterable

from cubecast.ids import Incarnation, NodeId
from cubecast.net.handshake import LAST_INCARNATION, UNHEARD_OF, Place, Refused

RESERVED_FOR = 5.0
"""Seconds for which an id that was offered to somebody is not offered to anybody else."""


class Directory:
    def __init__(self, dimension: int, is_connected: Callable[[NodeId], bool]) -> None:
        self.dimension = dimension
        self.me: Place | None = None
        self.places: dict[NodeId, Place] = {}
        self._is_connected = is_connected
        self._offered: dict[NodeId, tuple[bytes, float]] = {}

    def settle(self, me: Place) -> None:
        """This node lives here from now on."""
        self.me = me
        self.places[me.node] = me

    def vacate(self) -> None:
        """This node gives up its place."""
        if self.me is not None:
            del self.places[self.me.node]
            self.me = None

    def learn(self, places: Iterable[Place]) -> list[Place]:
        """Adopt what is newer than what we know; what was news."""
        news = []
        for place in places:
            known = self.places.get(place.node)
            mine = self.me is not None and place.node == self.me.node
            inside = 0 <= place.node < 1 << self.dimension and place.incarnation >= UNHEARD_OF
            if inside and not mine and (known is None or place.incarnation > known.incarnation):
                self.places[place.node] = place
                news.append(place)
        return news

    def objection(self, place: Place) -> Refused | None:
        """Why a node may not call itself that."""
        if not 0 <= place.node < 1 << self.dimension:
            return Refused(f"id {place.node} does not exist in a cube of {1 << self.dimension}", retry=False)
        known = self.places.get(place.node)
        if known is None or place.instance == known.instance or place.incarnation > known.incarnation:
            return None
        if self._is_held(known):
            return Refused(f"id {place.node} is in use by the node at {known.address}", retry=False)
        reason = f"incarnation {place.incarnation} of id {place.node} was somebody else's"
        return Refused(reason, retry=True, newest_incarnation=known.incarnation)

    def offer(self, now: float, instance: bytes, wanted: NodeId | None, attempt: int) -> tuple[int, int] | Refused:
        """An id for somebody who joins: the one it wants, or one that nobody holds."""
        size = 1 << self.dimension
        if wanted is not None:
            if not 0 <= wanted < size:
                return Refused(f"id {wanted} does not exist in a cube of {size}; ids are 0 to {size - 1}", retry=False)
            known = self.places.get(wanted)
            if known is not None and known.incarnation >= LAST_INCARNATION:
                return Refused(f"id {wanted} has lived all its incarnations; take another one", retry=False)
            if known is not None and self._is_held(known):
                return Refused(f"id {wanted} is in use by the node at {known.address}", retry=False)
            return self._reserve(now, instance, wanted)
        free = [node for node in range(size) if self._is_free(now, instance, node)]
        if not free:
            return Refused(f"all {size} ids are taken; start the cluster with a larger dimension", retry=True)
        unused = [node for node in free if node not in self.places] or free
        # Members that offer at the same moment may pick the same id; who is refused tries another one.
        return self._reserve(now, instance, unused[attempt * (instance[0] + 1) % len(unused)])

    def _reserve(self, now: float, instance: bytes, node: NodeId) -> tuple[NodeId, Incarnation]:
        self._offered[node] = (instance, now)
        known = self.places.get(node)
        return node, 0 if known is None else known.incarnation + 1

    def _is_free(self, now: float, instance: bytes, node: NodeId) -> bool:
        known = self.places.get(node)
        if known is not None and (self._is_held(known) or known.incarnation >= LAST_INCARNATION):
            return False
        holder, since = self._offered.get(node, (instance, now))
        return holder == instance or now - since > RESERVED_FOR

    def _is_held(self, place: Place) -> bool:
        mine = self.me is not None and place.node == self.me.node
        return mine or self._is_connected(place.node)
