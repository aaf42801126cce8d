"""Who lives where: one place per id, the newest incarnation wins, and no node takes an id that a living node holds.

Ids are places of a cube that members hand out, or numbers of 63 bits that nodes draw themselves. Of the latter there
is no end, so the directory is bounded: what was not used for longest is forgotten. And anybody may speak of any of
them, so what a node says of itself outweighs what others say of it.
"""

from collections.abc import Callable, Iterable
from itertools import islice

from cubecast.addresses import Address
from cubecast.errors import BadInput
from cubecast.ids import ID_LIMIT, Incarnation, NodeId
from cubecast.net.links.handshake import LAST_INCARNATION, MOST_PLACES, UNHEARD_OF, Place, Refused
from cubecast.net.security.limits import Bucket

RESERVED_FOR = 5.0
"""Seconds for which an id that was offered to one joiner is not offered to another."""
CONTACTS = 16
"""Nodes that a newcomer is told of where no node knows all others."""
LOOKED_AT = 64
"""Places of which one that is not in use is sought before another one is remembered."""


class Directory:
    def __init__(
        self,
        dimension: int,
        is_connected: Callable[[NodeId], bool],
        *,
        draws_ids: bool = False,
        everybody: bool = True,
        most: int = MOST_PLACES,
    ) -> None:
        self.dimension = dimension
        self.draws_ids = draws_ids
        """Ids are of 63 bits; without, those of a cube."""
        self.everybody = everybody
        """All nodes are to know of all."""
        self.me: Place | None = None
        self.places: dict[NodeId, Place] = {}
        """Where ids are drawn, the first one was not used for longest."""
        self._is_connected = is_connected
        self._most = most
        self._hearsay: set[NodeId] = set()
        """Places of which only others spoke; kept where ids are drawn."""
        self._offered: dict[NodeId, tuple[bytes, float]] = {}

    @property
    def size(self) -> int:
        """How many ids there are."""
        return ID_LIMIT if self.draws_ids else 1 << self.dimension

    @property
    def told_dimension(self) -> int | None:
        """What status and pages say; there is none where ids are drawn."""
        return None if self.draws_ids else self.dimension

    def settle(self, me: Place) -> None:
        """This node lives here from now on."""
        self.me = me
        self.places[me.node] = me
        self._hearsay.discard(me.node)

    def vacate(self) -> None:
        """This node gives up its place."""
        if self.me is not None:
            del self.places[self.me.node]
            self.me = None

    def meet(self, place: Place) -> list[Place]:
        """A node tells where it lives itself; what was news."""
        if not self.draws_ids:
            return self.learn([place])
        known = self.places.get(place.node)
        if (self.me is not None and place.node == self.me.node) or not self._may_enter(place):
            return []
        self._enter(place)
        self._hearsay.discard(place.node)
        return [] if known == place else [place]

    def learn(self, places: Iterable[Place]) -> list[Place]:
        """Others tell where nodes live: adopt what is newer than what we know; what was news."""
        news = []
        for place in places:
            known = self.places.get(place.node)
            mine = self.me is not None and place.node == self.me.node
            inside = 0 <= place.node < self.size and place.incarnation >= UNHEARD_OF
            if not inside or mine or (known is not None and place.incarnation <= known.incarnation):
                continue
            if self.draws_ids:
                if self._is_connected(place.node) or not is_dialled(place.address) or not self._may_enter(place):
                    continue
                self._enter(place)
                self._hearsay.add(place.node)
            else:
                self.places[place.node] = place
            news.append(place)
        return news

    def use(self, node: NodeId) -> None:
        """A packet names it: of drawn ids, this is not the next to be forgotten."""
        if self.draws_ids and node in self.places:
            self.places[node] = self.places.pop(node)

    def forget(self, node: NodeId) -> None:
        """No node of that id is where others say it is. What a cluster file says stays."""
        if node in self._hearsay and self.places[node].incarnation > UNHEARD_OF:
            self._hearsay.discard(node)
            del self.places[node]

    def gone(self, node: NodeId) -> None:
        """It left in good order. Where ids are drawn it comes back, if at all, by calling."""
        if self.draws_ids and not (self.me is not None and node == self.me.node):
            self._hearsay.discard(node)
            self.places.pop(node, None)

    def is_hearsay(self, node: NodeId) -> bool:
        """Is what is known of it known from others only, who may say anything?"""
        return node in self._hearsay

    def _enter(self, place: Place) -> None:
        self.places.pop(place.node, None)
        self.places[place.node] = place

    def _may_enter(self, place: Place) -> bool:
        """Is it known, or is there room, or a place that is not in use?"""
        if place.node in self.places or len(self.places) < self._most:
            return True
        for node in list(islice(self.places, LOOKED_AT)):
            if self._is_held(self.places[node]):
                self.use(node)
            else:
                del self.places[node]
                self._hearsay.discard(node)
                return True
        return False

    def for_newcomers(self) -> list[Place]:
        """Everybody; or this node and some it has links to, where no node needs to know all others."""
        if self.everybody:
            return list(self.places.values())
        held = (place for place in reversed(self.places.values()) if self._is_held(place))
        return list(islice(held, CONTACTS))

    def objection(self, place: Place) -> Refused | None:
        """Why a node may not call itself that."""
        if not 0 <= place.node < self.size:
            return self._no_such_id(place.node)
        known = self._known(place.node)
        if known is None or place.instance == known.instance or place.incarnation > known.incarnation:
            return None
        if self._is_held(known):
            return Refused(f"id {place.node} is in use by the node at {known.address}", retry=False)
        reason = f"incarnation {place.incarnation} of id {place.node} was somebody else's"
        return Refused(reason, retry=True, newest_incarnation=known.incarnation)

    def _no_such_id(self, node: NodeId) -> Refused:
        if self.draws_ids:
            return Refused(f"no node has the id {node}; ids are 0 to 2^63 - 1", retry=False)
        size = self.size
        return Refused(f"id {node} does not exist in a cube of {size}; ids are 0 to {size - 1}", retry=False)

    def _known(self, node: NodeId) -> Place | None:
        """What is certain enough to refuse a caller for it."""
        return None if node in self._hearsay else self.places.get(node)

    def offer(self, now: float, instance: bytes, wanted: NodeId | None, attempt: int) -> tuple[int, int] | Refused:
        """An id for a joiner: the one it wants, or one that no node holds."""
        size = self.size
        if wanted is not None:
            if not 0 <= wanted < size:
                return self._no_such_id(wanted)
            known = self._known(wanted)
            if known is not None and known.incarnation >= LAST_INCARNATION:
                return Refused(f"id {wanted} has lived all its incarnations; take another one", retry=False)
            if known is not None and self._is_held(known):
                reason = f"id {wanted} is in use by the node at {known.address}"
                return Refused(reason, retry=True, newest_incarnation=known.incarnation)
            return self._reserve(now, instance, wanted)
        if self.draws_ids:
            return Refused("who joins this cluster draws an id itself; run the same version everywhere", retry=False)
        free = [node for node in range(size) if self._is_free(now, instance, node)]
        if not free:
            return Refused(f"all {size} ids are taken; start the cluster with a larger dimension", retry=True)
        unused = [node for node in free if node not in self.places] or free
        # Members that offer at the same moment may pick the same id; who is refused tries another one.
        return self._reserve(now, instance, unused[attempt * (instance[0] + 1) % len(unused)])

    def _reserve(self, now: float, instance: bytes, node: NodeId) -> tuple[NodeId, Incarnation]:
        if not self.draws_ids:
            self._offered[node] = (instance, now)
        known = self._known(node)
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


def is_dialled(address: str) -> bool:
    """Could a node listen there?"""
    try:
        return Address.parse(address).port > 0
    except BadInput:
        return False


# Addresses of nodes that packets speak of, handed on over links whose other end was not told yet, and how much of what
# others tell a node takes in and acts upon.
#
# Where no node knows all others, a packet may name a node that its receiver never heard of. The sender knows where
# that one lives, and says so before the packet. What a node is told like this it has from others, who may be wrong or
# mean harm: one link can make it remember only so many places, and all of them together make it call only so many.
# Follows decision 0044.

TOLD_TO_A_LINK = 4096
"""Places remembered as told; what was told before is told again."""
TOLD_PER_SECOND, TOLD_AT_ONCE = 64.0, 1024
"""Places that one link may tell."""
CALLS_PER_SECOND, CALLS_IN_A_ROW = 64.0, 256
"""To nodes that are known from others only."""


class Elsewhere(OSError):  # noqa: N818 - no fault of anybody
    """A node is not where others say it is."""


class _Link:
    def __init__(self, now: float) -> None:
        self.told: dict[NodeId, Incarnation] = {}
        """What the other end knows from us."""
        self.tells = Bucket(TOLD_PER_SECOND, TOLD_AT_ONCE / TOLD_PER_SECOND, now)


class Introductions:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._links: dict[NodeId, _Link] = {}
        self._calls: Bucket | None = None
        self.ignored = 0
        """Places beyond what one link may tell, and calls not made because there were too many of such."""

    def opened(self, now: float, node: NodeId) -> None:
        self._links[node] = _Link(now)

    def closed(self, node: NodeId) -> None:
        self._links.pop(node, None)

    def to_tell(self, peer: NodeId, mentioned: Iterable[NodeId]) -> list[Place]:
        """Places of these that the peer was not told over this link; from now on it was."""
        link = self._links.get(peer)
        told = {} if link is None else link.told
        places = []
        for node in mentioned:
            place = self._directory.places.get(node)
            if place is not None and node != peer and told.get(node) != place.incarnation:
                told[node] = place.incarnation
                places.append(place)
        while len(told) > TOLD_TO_A_LINK:
            del told[next(iter(told))]
        return places

    def heard(self, now: float, teller: NodeId, places: list[Place]) -> list[Place]:
        """As many of these as this link may tell."""
        link = self._links.get(teller)
        if link is None:
            return []
        for count, _ in enumerate(places):
            if link.tells.wait(now):
                self.ignored += len(places) - count
                return places[:count]
            link.tells.take(1.0)
        return places

    def may_call(self, now: float, node: NodeId) -> bool:
        """A node that said itself where it lives is called whenever it is needed, others now and then."""
        if not self._directory.is_hearsay(node):
            return True
        if self._calls is None:
            self._calls = Bucket(CALLS_PER_SECOND, CALLS_IN_A_ROW / CALLS_PER_SECOND, now)
        if self._calls.wait(now):
            self.ignored += 1
            return False
        self._calls.take(1.0)
        return True
