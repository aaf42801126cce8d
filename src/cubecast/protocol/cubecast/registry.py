"""Who lives, in which incarnation, as this node knows it, and how it finds out who does not. Follows decision 0011."""

from typing import NamedTuple

from cubecast.ids import Incarnation, NodeId
from cubecast.protocol.cubecast.copies import Destinations
from cubecast.protocol.cubecast.parameters import Parameters
from cubecast.protocol.cubecast.vocabulary import Life, Standing
from cubecast.protocol.hypercube.topology import children
from cubecast.protocol.masks import ids_of


class _Status(NamedTuple):
    incarnation: Incarnation
    alive: bool


class Registry:
    __slots__ = ("_faulty", "_restarted", "_status", "alive", "incarnation", "known", "lives", "node")

    def __init__(self, node: NodeId, incarnation: Incarnation, founders: int) -> None:
        self.node = node
        self.incarnation = incarnation
        self._status = {peer: _Status(0, True) for peer in ids_of(founders)}
        self._status[node] = _Status(incarnation, True)
        self.lives = {peer: status.incarnation for peer, status in self._status.items()}
        """Of the nodes held correct, this one included, the incarnation."""
        self.known = {peer: Life(peer, incarnation) for peer, incarnation in self.lives.items()}
        """The same with the name of that life, made once for all that is received of it."""
        self.alive = founders | 1 << node
        """Mask of the nodes held correct, this one included."""
        self._restarted = 1 << node if incarnation else 0
        self._faulty: tuple[Life, ...] | None = None

    @property
    def others(self) -> int:
        return self.alive & ~(1 << self.node)

    def incarnation_of(self, node: NodeId) -> Incarnation:
        status = self._status.get(node)
        return -1 if status is None else status.incarnation

    def is_alive(self, node: NodeId, incarnation: Incarnation) -> bool:
        return self.lives.get(node) == incarnation

    def is_dead(self, life: tuple[NodeId, Incarnation]) -> bool:
        node, incarnation = life
        return self.lives.get(node) != incarnation and incarnation <= self.faulty_up_to(node)

    def faulty_up_to(self, node: NodeId) -> Incarnation:
        """Its newest incarnation held faulty, −1 when none is."""
        status = self._status.get(node)
        return -1 if status is None else status.incarnation - status.alive

    def hold_alive(self, node: NodeId, incarnation: Incarnation) -> bool:
        """True when that is news; its older incarnations are faulty from now on."""
        if incarnation <= self.incarnation_of(node):
            return False
        self._status[node] = _Status(incarnation, True)
        self.lives[node] = incarnation
        self.known[node] = Life(node, incarnation)
        self._faulty = None
        self.alive |= 1 << node
        self._restarted |= bool(incarnation) << node
        return True

    def hold_faulty(self, node: NodeId, incarnation: Incarnation) -> bool:
        """True when that is news."""
        if incarnation <= self.faulty_up_to(node):
            return False
        self._status[node] = _Status(incarnation, False)
        self.lives.pop(node, None)
        self.known.pop(node, None)
        self._faulty = None
        self.alive &= ~(1 << node)
        return True

    def faulty(self) -> tuple[Life, ...]:
        """Per node, the newest incarnation held faulty."""
        if self._faulty is None:
            found = ((node, self.faulty_up_to(node)) for node in sorted(self._status))
            self._faulty = tuple(Life(node, incarnation) for node, incarnation in found if incarnation >= 0)
        return self._faulty

    def standings(self) -> tuple[Standing, ...]:
        return tuple(Standing(node, *self._status[node]) for node in sorted(self._status))

    def living(self, destinations: Destinations) -> int:
        """Mask of the destinations whose incarnation is held correct."""
        mask = destinations.mask & self.alive
        unsure = mask & (self._restarted | destinations.later)
        if unsure:
            for node in ids_of(unsure):
                if self._status[node].incarnation != destinations.epoch(node)[0]:
                    mask &= ~(1 << node)
        return mask


# Failure detection by VCube testing rounds, with incarnations, forgiving about this node's own slowness.
#
# Each round a node tests, in every cluster, the first member it holds correct that takes part, and all newcomers: a
# newcomer tests no node, and of one that crashed before everybody had heard of it the others in its cluster may not
# know. Whatever arrives from a peer counts as a sign of life. A tested peer that stays silent for the patience is
# suspected. A round that itself comes late says that *this* node stood still: then nobody is suspected and everybody's
# time starts anew. Besides, one id that is not held correct is tested per round, in turn, so that healed partitions
# meet.


class Detector:
    def __init__(self, node: NodeId, parameters: Parameters) -> None:
        self._node = node
        self._parameters = parameters
        self.heard: dict[NodeId, float] = {}
        """When each peer last gave a sign of life."""
        self._last_round: float | None = None
        self._turn = 0

    def round(
        self, now: float, others: int, *, idle: int = 0, joining: bool = False
    ) -> tuple[tuple[NodeId, ...], tuple[NodeId, ...]]:
        """(whom to test, whom to suspect); `others` are held correct, `idle` those of them that do not take part, or
        that a joining node waits for.

        A joining node may start over before its patience ends, and learns anew who there is: it remembers since when
        it waits for each, or it would wait for ever for somebody whom nobody else tests.
        """
        length = self._parameters.round_length
        if self._last_round is None or now - self._last_round > 2 * length:
            self.heard.clear()
        self._last_round = now
        watched = self._watched(others, idle)
        before = self.heard if joining else {}
        self.heard = before | {peer: self.heard.get(peer, now) for peer in watched}
        suspects = tuple(peer for peer in watched if now - self.heard[peer] >= self._parameters.patience)
        tested = [peer for peer in watched if peer not in suspects]
        return (*tested, *self._stranger(others)), suspects

    def _watched(self, others: int, idle: int) -> tuple[NodeId, ...]:
        first = tuple(children(self._node, self._parameters.dimension, others & ~idle))
        return (*first, *ids_of(idle & others)) if idle & others else first

    def _stranger(self, others: int) -> tuple[NodeId, ...]:
        strangers = list(ids_of(self._parameters.universe & ~others & ~(1 << self._node)))
        if not strangers:
            return ()
        self._turn += 1
        return (strangers[self._turn % len(strangers)],)
