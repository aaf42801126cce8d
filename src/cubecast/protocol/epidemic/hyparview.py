"""HyParView: membership in which no process knows all others, on links that both ends keep.

A process keeps a few links (`active`) and remembers some more processes (`passive`) to replace those that break. A
newcomer asks a contact; the contact accepts and sends its name on random walks, whose ends link to it too. Links are
connections: that one broke is told to both ends at once.

Symbols of the paper: active and passive view as they are called; `target` is the size the active view is kept at,
`most` (target times expansion) what it may grow to.
"""

# DEVIATION brisa §4.2: a link exists only when its other end accepted it, who has enough links looks for none, refusals
# are followed by a pause, evictions spare links that carry something, and islands are found by asking contacts.
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from cubecast.ids import NodeId
from cubecast.protocol.contract import Packet
from cubecast.protocol.effects import Effects, Link, Send, Unlink

# What HyParView's processes send each other. Ids are those of processes the receiver may have to find.

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


WALK = 6
REMEMBERED_AT = 3
"""Steps before its end at which a walk's newcomer is remembered."""
MOST_PASSIVE = 30
OFFERED = 4
TRIES = 3
"""Links asked for between two ticks."""
SHUFFLED_ACTIVE, SHUFFLED_PASSIVE = 3, 4
PENDING_TICKS = 3
"""After so many ticks without an answer a process that was asked for a link is taken not to exist."""
MOST_REQUESTS = 10
"""Of one process between two ticks: joins, requests for links, probes. More are ignored."""
MOST_STRANGERS = 32
"""Processes that others may make this one call between two ticks."""


class HyParView:
    """Methods append to `effects`. `on_up` and `on_down` are called when a link is there and when it is gone."""

    def __init__(self, me: NodeId, contacts: Ids, rng: Random, *, target: int, most: int) -> None:
        self.me = me
        self.contacts = contacts
        self.target = target
        self.most = most
        self.active: dict[NodeId, None] = {}
        self.passive: dict[NodeId, None] = {}
        self.effects: Effects = []
        self.on_up: Callable[[NodeId], None] = _nobody
        self.on_down: Callable[[NodeId], None] = _nobody
        self.in_use: Callable[[NodeId], bool] = lambda _: False
        """Does a flow use the link?"""
        self._rng = rng
        self._pending: dict[NodeId, int] = {}
        """Whom a link was asked of, and at which tick."""
        self._ticks = 0
        self._tries = 0
        self._requests: dict[NodeId, int] = {}
        self._strangers = 0

    # -- joining and leaving -----------------------------------------------------------------------------------------

    def join(self) -> None:
        others = [one for one in self.contacts if one != self.me]
        if others:
            contact = self._rng.choice(others)
            self._pending[contact] = self._ticks
            self._send(contact, Join())

    def leave(self) -> None:
        for peer in list(self.active):
            self._send(peer, Disconnect(self._offer(peer)))
            self._drop(peer)

    def is_too_much(self, sender: NodeId) -> bool:
        """It asks more often than any correct process does."""
        self._requests[sender] = asked = self._requests.get(sender, 0) + 1
        return asked > MOST_REQUESTS

    def _may_call_stranger(self) -> bool:
        self._strangers += 1
        return self._strangers <= MOST_STRANGERS

    def on_join(self, sender: NodeId) -> None:
        self._send(sender, Accept())  # before anything else: what follows presupposes the link
        self._add(sender)
        for peer in self.active:
            if peer != sender:
                self._send(peer, ForwardJoin(sender, WALK))

    def on_forward_join(self, sender: NodeId, packet: ForwardJoin) -> None:
        newcomer = packet.newcomer
        if newcomer == self.me or newcomer in self.active:
            return
        others = [peer for peer in self.active if peer not in (sender, newcomer)]
        if packet.ttl <= 0 or not others:
            if self._may_call_stranger():
                self._ask(newcomer, high=True)
            return
        if packet.ttl == REMEMBERED_AT:
            self._remember([newcomer])
        self._send(self._rng.choice(others), ForwardJoin(newcomer, packet.ttl - 1))

    # -- links -------------------------------------------------------------------------------------------------------

    def on_neighbour(self, sender: NodeId, packet: Neighbour) -> None:
        if packet.high or len(self.active) < self.target or sender in self.active:
            self._send(sender, Accept())
            self._add(sender)
        else:
            self._send(sender, Refuse(self._offer(sender)))

    def on_accept(self, sender: NodeId) -> None:
        if self._pending.pop(sender, None) is not None or sender in self.active:
            self._add(sender)
        else:  # it was given up as unanswered
            self._send(sender, Disconnect(()))

    def on_refuse(self, sender: NodeId, packet: Refuse) -> None:
        self._pending.pop(sender, None)
        self._remember(packet.ids)
        self._refill()

    def on_disconnect(self, sender: NodeId, packet: Disconnect) -> None:
        self._pending.pop(sender, None)
        self._drop(sender)
        self._remember([*packet.ids, sender])
        self._refill()

    def on_broken(self, peer: NodeId) -> None:
        """The connection ended: the process is forgotten, for it may be gone."""
        self._pending.pop(peer, None)
        self.passive.pop(peer, None)
        self._drop(peer)
        self._refill()

    def _add(self, peer: NodeId) -> None:
        if peer in self.active or peer == self.me:
            return
        while len(self.active) >= self.most:
            self._evict()
        self.active[peer] = None
        self.passive.pop(peer, None)
        self._pending.pop(peer, None)
        self.effects.append(Link(peer))
        self.on_up(peer)

    def _evict(self) -> None:
        unused = [peer for peer in self.active if not self.in_use(peer)]
        peer = self._rng.choice(unused or list(self.active))
        self._send(peer, Disconnect(self._offer(peer)))
        self._drop(peer)
        self._remember([peer])

    def _drop(self, peer: NodeId) -> None:
        if peer in self.active:
            del self.active[peer]
            self.effects.append(Unlink(peer))
            self.on_down(peer)

    def _refill(self) -> None:
        if len(self.active) + len(self._pending) >= self.target or self._tries >= TRIES:
            return
        candidates = [peer for peer in self.passive if peer not in self._pending]
        if candidates:
            self._tries += 1
            self._ask(self._rng.choice(candidates), high=not self.active)
        elif not self.active and not self._pending:
            self._tries += 1
            self.join()

    def _ask(self, peer: NodeId, *, high: bool) -> None:
        if peer != self.me and peer not in self.active:
            self._pending[peer] = self._ticks
            self._send(peer, Neighbour(high))

    def link_to(self, peer: NodeId) -> None:
        """Whatever the number of links: it is another island."""
        self._ask(peer, high=True)

    # -- remembering -------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        self._ticks += 1
        self._tries = self._strangers = 0
        self._requests.clear()
        for peer in [one for one, since in self._pending.items() if self._ticks - since > PENDING_TICKS]:
            del self._pending[peer]
            self.passive.pop(peer, None)
        self._refill()

    def shuffle(self) -> None:
        if self.active:
            ids = (*self._some(self.active, SHUFFLED_ACTIVE), *self._some(self.passive, SHUFFLED_PASSIVE))
            self._send(self._rng.choice(list(self.active)), Shuffle(self.me, ids, WALK))

    def on_shuffle(self, sender: NodeId, packet: Shuffle) -> None:
        others = [peer for peer in self.active if peer not in (sender, packet.origin)]
        if packet.ttl > 0 and others:
            self._send(self._rng.choice(others), Shuffle(packet.origin, packet.ids, packet.ttl - 1))
        elif packet.origin != self.me and self._may_call_stranger():
            self._send(packet.origin, ShuffleReply(self._some(self.passive, len(packet.ids) + 1)))
            self._remember([packet.origin, *packet.ids])

    def on_shuffle_reply(self, packet: ShuffleReply) -> None:
        self._remember(packet.ids)

    def _remember(self, ids: Iterable[NodeId]) -> None:
        for one in ids:
            if one != self.me and one not in self.active and one not in self.passive:
                if len(self.passive) >= MOST_PASSIVE:
                    del self.passive[self._rng.choice(list(self.passive))]
                self.passive[one] = None

    def _offer(self, to: NodeId) -> Ids:
        return self._some([peer for peer in self.passive if peer != to], OFFERED)

    def _some(self, of: Iterable[NodeId], count: int) -> Ids:
        all_ = list(of)
        return tuple(self._rng.sample(all_, min(count, len(all_))))

    def _send(self, peer: NodeId, packet: Any) -> None:
        self.effects.append(Send((peer,), packet))

    def invariants(self) -> None:
        assert self.me not in self.active and self.me not in self.passive
        assert len(self.active) <= self.most, "more links than allowed"
        assert len(self.passive) <= MOST_PASSIVE
        assert not self.active.keys() & self.passive.keys(), "a neighbour is remembered as a stranger"


def _nobody(peer: NodeId) -> None:
    """No flow is interested in links."""
