"""How a new incarnation becomes part of the system: everybody who lives must know it before it takes part.

Follows decisions 0016 and 0045.
"""

from cubecast.ids import Incarnation, NodeId
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.packets import AnyPacket, Settle, SettlePart, Welcome
from cubecast.protocol.cubecast.vocabulary import Life, Standing
from cubecast.protocol.masks import ids_of, mask_of


class Joining:
    """Collects what the living know. It takes no side: when they contradict each other it starts over."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.contacts = 0
        """Mask of those this process knew of when it began; 0: nobody, or it began long ago."""
        self._told: dict[NodeId, dict[NodeId, Incarnation]] = {}
        """Per node that welcomed us, the verdicts it knew."""
        self._lists: dict[NodeId, dict[NodeId, Incarnation]] = {}
        """Per node that welcomed us and takes part, whom it held correct."""
        self.idle = 0
        """Mask of those who welcomed us while they were joining themselves."""
        self.is_sure = False
        """Somebody who takes part welcomed us, so that we know of all others; or none did for the patience; or
        everybody we knew of when we began joins as we do, and nobody else is known to them."""
        self.asked_again = 0
        """Mask of those that were asked again since the last retry: answers would multiply otherwise."""
        self.waited_enough = False
        """For those who take part to know each other: no longer than the patience."""
        self._named = 0
        self._agreed: set[Life] = set()
        self.winner: Life | None = None
        """Of two sides that hold each other faulty, a life of the one this node gave way to."""

    def welcomed(self, sender: NodeId, active: bool, nodes: tuple[Standing, ...]) -> None:
        self._told[sender] = {node: incarnation - alive for node, incarnation, alive in nodes}
        if active:
            self._lists[sender] = {node: incarnation for node, incarnation, alive in nodes if alive}
        self.idle = self.idle & ~(1 << sender) | (not active) << sender
        self._named |= sum(1 << node for node, _, alive in nodes if alive)
        self.is_sure = self.is_sure or active or self._all_begin

    def agree(self, faulty: tuple[Life, ...]) -> None:
        """We told somebody who settles what they left that we accept nothing from these; so we must know of them."""
        self._agreed.update(faulty)

    @property
    def welcomers(self) -> int:
        return sum(1 << node for node in self._told)

    @property
    def _all_begin(self) -> bool:
        """All are started at once, as after a power cut: then waiting for somebody who takes part is in vain. It is the
        patience cut short, no more, and as safe: whoever is missing all the same is a stranger, as to one that waited.
        """
        expected = (self.contacts | self._named) & ~(1 << self._context.node)
        return bool(self.contacts) and not expected & ~self.welcomers

    @property
    def is_complete(self) -> bool:
        return self._everybody_welcomed_us and (self.waited_enough or not self.unacquainted)

    def to_ask_again(self) -> int:
        """Once each between two retries, or answers would multiply."""
        asked = self.unacquainted & ~self.asked_again
        self.asked_again |= asked
        return asked

    @property
    def _everybody_welcomed_us(self) -> bool:
        registry = self._context.registry
        known = not self.silent and all(registry.is_dead(life) for life in self._agreed)
        return self.is_sure and known and self._heard_the_winner

    @property
    def unacquainted(self) -> int:
        """When nothing else is missing: mask of those who take part and did not know everybody else we would begin
        with when they welcomed us. Who lives with two that do not know each other reads from one what the other will
        never get, and they are asked again until they know each other or one of them gave way."""
        if not self._everybody_welcomed_us:
            return 0
        lives = self._context.registry.lives
        current = ((node, known) for node, known in self._lists.items() if lives.get(node) == known.get(node))
        return mask_of(node for node, known in current if not lives.items() <= known.items())

    @property
    def _heard_the_winner(self) -> bool:
        """Two that gave way could join each other before the winners' welcomes are in, and be told off again, by turns
        for ever. The winner is not waited for beyond the patience: after that this node starts over without it."""
        winner = self.winner
        return winner is None or self._context.registry.is_dead(winner) or bool(self.welcomers >> winner.node & 1)

    @property
    def silent(self) -> int:
        """Mask of those that have not welcomed this node."""
        return self._context.registry.others & ~self.welcomers

    @property
    def missing(self) -> list[NodeId]:
        return list(ids_of(self.silent))

    def speaks_for_losers(self, packet: AnyPacket) -> bool:
        """Does its sender hold those faulty whom we gave way to? It has to give way too; joining it undoes nothing."""
        winner = self.winner
        if winner is None or self._context.registry.is_dead(winner):
            return False
        verdicts = list(packet.dead)
        if isinstance(packet, Welcome) and packet.active:
            verdicts += [Life(node, incarnation) for node, incarnation, alive in packet.nodes if not alive]
        elif isinstance(packet, Settle | SettlePart):
            verdicts += packet.faulty
        return any(node == winner.node and incarnation >= winner.incarnation for node, incarnation in verdicts)

    def contradicts(self, sender: NodeId, packet: AnyPacket) -> bool:
        """Does it speak of the death of somebody we took for living, or come from somebody we took for dead?"""
        registry = self._context.registry
        verdicts = list(packet.dead)
        if isinstance(packet, Welcome) and packet.active:
            verdicts += [Life(node, incarnation) for node, incarnation, alive in packet.nodes if not alive]
        return registry.is_dead((sender, packet.by)) or any(
            node != self._context.node and registry.alive >> node & 1 and incarnation >= registry.incarnation_of(node)
            for node, incarnation in verdicts
        )

    def news(self) -> list[Life]:
        """Verdicts that not everybody who welcomed us knew."""
        told = [self._told[node] for node in ids_of(self._context.registry.others)]
        return [
            Life(node, incarnation)
            for node, incarnation in self._context.registry.faulty()
            if any(theirs.get(node, -1) < incarnation for theirs in told)
        ]
