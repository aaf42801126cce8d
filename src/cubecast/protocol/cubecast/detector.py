"""Failure detection by VCube testing rounds, with incarnations, forgiving about this node's own slowness.

Each round a node tests, in every cluster, the first member it holds correct that takes part, and all newcomers: a
newcomer tests no node, and of one that crashed before everybody had heard of it the others in its cluster may not know.
Whatever arrives from a peer counts as a sign of life. A tested peer that stays silent for the patience is suspected. A
round that itself comes late says that *this* node stood still: then nobody is suspected and everybody's time starts
anew. Besides, one id that is not held correct is tested per round, in turn, so that healed partitions meet.
"""

from cubecast.ids import NodeId
from cubecast.protocol.cubecast.parameters import Parameters
from cubecast.protocol.hypercube.topology import children
from cubecast.protocol.masks import ids_of


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
