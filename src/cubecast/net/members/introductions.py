"""Addresses of nodes that packets speak of, handed on over links whose other end was not told yet, and how much of what
others tell a node takes in and acts upon.

Where no node knows all others, a packet may name a node that its receiver never heard of. The sender knows where that
one lives, and says so before the packet. What a node is told like this it has from others, who may be wrong or mean
harm: one link can make it remember only so many places, and all of them together make it call only so many. Follows
decision 0044.
"""

from collections.abc import Iterable

from cubecast.ids import Incarnation, NodeId
from cubecast.net.links.handshake import Place
from cubecast.net.members.directory import Directory
from cubecast.net.security.limits import Bucket

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
