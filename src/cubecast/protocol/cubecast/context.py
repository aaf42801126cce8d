"""What the parts of one machine share: who we are, who lives, and the effects of the step under way."""

from dataclasses import replace

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.cubecast.convoys import join
from cubecast.protocol.cubecast.ledger import ProcessMemory
from cubecast.protocol.cubecast.packets import Ack
from cubecast.protocol.cubecast.parameters import Aggregation, Parameters
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.registry import Registry
from cubecast.protocol.cubecast.vocabulary import Life
from cubecast.protocol.effects import Effect, Effects, Send
from cubecast.protocol.masks import ids_of


class Context:
    """One per incarnation of the node."""

    __slots__ = (
        *("_aggregates", "_due", "_has_sent", "_is_lazy", "_ripening", "acks", "busy", "by", "closed", "dead"),
        *("deaths", "effects", "node", "opening", "parameters", "process", "registry", "ripe", "stirring"),
    )

    def __init__(
        self,
        node: NodeId,
        incarnation: int,
        parameters: Parameters,
        founders: int,
        process: ProcessMemory | None = None,
    ) -> None:
        self.node = node
        self.parameters = parameters
        self.by = incarnation
        self.registry = Registry(node, incarnation, founders)
        self.process = ProcessMemory(incarnation) if process is None else process
        self.deaths = 0
        """How many verdicts were adopted since this incarnation takes part."""
        self.opening: dict[Topic, None] = {}
        """Topics whose subscription goes on from an earlier incarnation and hands nothing over yet."""
        self.effects: Effects = []
        self.busy = False
        """Something was begun that may need to be sent again."""
        self.stirring: dict[Topic, None] = {}
        """Topics with something of that kind, and perhaps some that had: those at rest are never looked at."""
        self.ripe: dict[Topic, None] = {}
        """Topics of which something may leave now that had to wait before, or was not there."""
        self.dead: tuple[Life, ...] = ()
        """Verdicts that not everybody is known to know: they ride in every packet."""
        self.closed: dict[NodeId, int] = {}
        """Per node, its newest faulty incarnation about which everything is settled."""
        self._aggregates = parameters.aggregation is Aggregation.ON
        self._is_lazy = bool(parameters.ack_delay)
        self._has_sent = False
        """Whether anything is sent in this step."""
        self.acks: dict[tuple[NodeId, Topic], list[MessageId]] = {}
        """Those that wait, by whom they are for."""
        self._due: dict[tuple[NodeId, Topic], None] = {}
        """Somebody waits for these."""
        self._ripening: dict[tuple[NodeId, Topic], None] = {}
        """These have waited for half of the delay already."""

    def stir(self, topic: Topic) -> None:
        """Something was begun on the topic that may need to be sent again."""
        self.busy = True
        self.stirring[topic] = None

    def report(self, topic: Topic, life: Life, first: int, last: int) -> None:
        """These were named as missing: their publisher is to be told."""
        if life.node != self.node:
            self.process.reports.owe(topic, life, first, last)
            self.busy = True

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def send(self, peers: tuple[NodeId, ...], packet: object) -> None:
        if peers:
            self._has_sent = True
            self.effects.append(Send(peers, packet))

    def send_to(self, mask: int, packet: object) -> None:
        self.send(tuple(ids_of(mask)), packet)

    def restamped(self, packet: Publication) -> Publication:
        """The same publication, sent by this node; the same object whenever nothing changes."""
        if packet.by == self.by and packet.dead == self.dead:
            return packet
        return replace(packet, by=self.by, dead=self.dead)

    def acknowledge(self, peer: NodeId, topic: Topic, message: MessageId, hurry: bool) -> None:
        """Acknowledgements for one peer ride together: those of a step, or, when nobody waits, of a while."""
        key = peer, topic
        acks = self.acks.get(key)
        if acks is None:
            self.acks[key] = [message]
        else:
            acks.append(message)
        if hurry:
            self._due[key] = None

    def hurry(self, source: NodeId, topic: Topic) -> None:
        """The source waits: what it sent here itself and is not answered yet is answered now."""
        if (source, topic) in self.acks:
            self._due[source, topic] = None

    def ripen_acks(self) -> None:
        """Half of the delay passed: what waited before that leaves, unless a publication took it along."""
        self._due.update(self._ripening)
        self._ripening = {key: None for key in self.acks if key not in self._due}

    def finish(self) -> Effects:
        """The effects of the step."""
        if self._aggregates:
            self.effects = join(self.effects, self.by, self.dead, self.parameters.max_batch_bytes)
        if self.acks and (self._due or not self._is_lazy or (self._has_sent and self._ripening)):
            self._send_acks()
        effects, self.effects, self._has_sent = self.effects, [], False
        return effects

    def _send_acks(self) -> None:
        """All when none may wait; else those somebody waits for, and ripening ones whose peer gets something anyway.

        The latter go in front, because what is sent before the first delivery of a step is written together.
        """
        if self._ripening and self._is_lazy:
            served = [peer for effect in self.effects if isinstance(effect, Send) for peer in effect.peers]
            riding = [key for key in self._ripening if key[0] in served] if served else []
            self.effects[:0] = [self._take_acks(key) for key in riding]
        for key in list(self._due if self._is_lazy else self.acks):
            if key in self.acks:
                self.effects.append(self._take_acks(key))
        self._due.clear()

    def _take_acks(self, key: tuple[NodeId, Topic]) -> Send:
        self._ripening.pop(key, None)
        return Send((key[0],), Ack(self.by, self.dead, key[1], tuple(self.acks.pop(key))))

    def is_closed(self, life: tuple[NodeId, int]) -> bool:
        """Held faulty, and whatever survived of it is where it belongs."""
        return life[1] <= self.closed.get(life[0], -1)
