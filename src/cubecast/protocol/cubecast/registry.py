"""Who lives, in which incarnation, as this node knows it.

A join-semilattice: per node the newest incarnation heard of and whether it is held correct; a newer incarnation wins,
and of one incarnation *faulty* wins, for ever. Holding an incarnation faulty is a verdict, not an opinion: a node that
learns of it about itself returns as a new incarnation. So a wrong suspicion costs a restart and never an order.
Follows decision 0011.
"""

from typing import NamedTuple

from cubecast.ids import Incarnation, NodeId
from cubecast.protocol.cubecast.destinations import Destinations
from cubecast.protocol.cubecast.vocabulary import Life, Standing
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
