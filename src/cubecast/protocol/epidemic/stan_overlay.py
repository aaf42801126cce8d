"""One member's place in one topic's overlay, and the batches it has seen there."""

from collections.abc import Iterable
from math import ceil, log

from cubecast.errors import RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId

LEAST_VIEW = 5
"""Views that churn made smaller fill up to so many."""
CONNECTED = 4.6
"""-ln(-ln 0.99): random views of ln m + 4.6 connect m members with a probability of 0.99."""
MOST_EARLY = 1024
"""Batches of a publisher that are remembered beyond the first one missing."""
MOST_PUBLISHERS = 4096
_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def view_size(members: int) -> int:
    return min(members - 1, ceil(log(members) + CONNECTED)) if members > 1 else 0


def weight(me: NodeId, other: NodeId) -> int:
    """The same in every topic, unrelated to the other's weight of me: a hash of both ids, in this order."""
    # DEVIATION stan §3.2.3: ids are hashed one after the other, not as concatenated text, in which 1|12 is 11|2.
    return _mix(_mix((me + _GOLDEN) & _MASK) + (other + 1) * _GOLDEN & _MASK)


def _mix(x: int) -> int:
    """The finalizer of splitmix64."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


class Overlay:
    """`view` is what the thesis calls so. Pins are links kept because their ends asked for it."""

    __slots__ = ("_seen", "confirmed", "incoming", "joining", "keeper", "pins", "view", "wanted")

    def __init__(self, view: Iterable[NodeId] = ()) -> None:
        self.view = list(view)
        self.pins: set[NodeId] = set()
        self.incoming: set[NodeId] = set()
        """Who said that this process is in its view."""
        self.keeper: NodeId | None = None
        """Who was asked to pin this process."""
        self.joining: list[NodeId] | None = None
        """Members that answered a newcomer, until it chose among them."""
        self.confirmed = True
        """The application was told that it is subscribed."""
        self.wanted = 0
        """Links a newcomer takes over."""
        self._seen: dict[tuple[NodeId, Incarnation], _Seen] = {}

    def neighbours(self) -> list[NodeId]:
        return [*self.view, *sorted(self.pins)]

    def forget(self, peer: NodeId) -> None:
        if peer in self.view:
            self.view.remove(peer)
        self.pins.discard(peer)
        self.incoming.discard(peer)
        if self.keeper == peer:
            self.keeper = None

    def is_new(self, message: MessageId, count: int) -> bool:
        """Is this batch seen for the first time? From now on it was."""
        self.check_room(message)
        return self._seen.setdefault((message.source, message.incarnation), _Seen()).add(message.counter, count)

    def check_room(self, message: MessageId) -> None:
        """Refuse what would be of one publisher too many."""
        if len(self._seen) >= MOST_PUBLISHERS and (message.source, message.incarnation) not in self._seen:
            raise RemoteProtocolError(f"more than {MOST_PUBLISHERS} publishers in one topic")


class _Seen:
    """Batches of one publisher: all up to a counter, and some beyond it."""

    __slots__ = ("early", "upto")

    def __init__(self) -> None:
        self.upto: Counter = 0
        self.early: dict[Counter, int] = {}

    def add(self, first: Counter, count: int) -> bool:
        if first <= self.upto or first in self.early:
            return False
        self.early[first] = count
        if len(self.early) > MOST_EARLY:  # what is missing before them is given up
            self.upto = min(self.early) - 1
        while (more := self.early.pop(self.upto + 1, 0)) > 0:
            self.upto += more
        return True
