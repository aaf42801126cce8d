"""SimpleGossip: Cyclon's random views, messages pushed to some of the view, and what did not come pulled.

Cyclon (S. Voulgaris et al.): a process knows `view` others, each with an age. Once per period it takes out the oldest,
sends it some entries and itself, and gets some back; who is gone so leaves all views. Push is infect and die: who gets
a message for the first time sends it to `fanout` processes of its view, once. Pull is anti-entropy: every `pull` it
tells a random process of its view what it has, and is sent what it lacks.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from cubecast.errors import RemoteProtocolError
from cubecast.ids import Counter, Incarnation, NodeId, Topic
from cubecast.protocol.contract import Packet
from cubecast.protocol.effects import Effects
from cubecast.protocol.epidemic.dissemination import MOST_SOURCES, Disseminator, Message, Source, check_ids
from cubecast.protocol.parameters import check_parameters, parameter

MOST_ENTRIES = 64
PATIENCE = 50
"""Periods after which a pull counts as lost."""
PULLED = 4
"""Batches of a publisher in the answer to a pull: with more, pulls of processes that are behind would swamp all."""


@dataclass(frozen=True)
class GossipParameters:
    view: int = parameter(20, "processes a process knows", least=1, most=MOST_ENTRIES)
    exchanged: int = parameter(8, "of them sent to another in an exchange", least=1, most=MOST_ENTRIES)
    period: float = parameter(1000.0, "between two exchanges", live=1.0, above=0, unit="time")
    fanout: int = parameter(0, "processes a message is pushed to; 0: the logarithm of how many there are", least=0)
    pull: float = parameter(100.0, "between two pulls", live=0.1, above=0, unit="time")
    buffer: int = parameter(256, "batches of a publisher kept for others", least=1, most=1 << 20)

    def __post_init__(self) -> None:
        check_parameters(self)


@dataclass(slots=True)
class Exchange(Packet):
    """Entries of the sender's view with their ages."""

    entries: tuple[tuple[NodeId, int], ...]
    answer: bool

    def mentions(self) -> Iterable[NodeId]:
        return (node for node, _ in self.entries)


@dataclass(slots=True)
class Pull(Packet):
    """What the sender has without a hole."""

    digest: tuple[tuple[Source, Counter], ...]


@dataclass(slots=True)
class Pulled(Message):
    """Sent because it was asked for: it is not pushed on."""


@dataclass(slots=True)
class Answered(Packet):
    """That was the answer to a pull."""


class SimpleGossip(Disseminator):
    def __init__(
        self,
        node: NodeId,
        parameters: GossipParameters,
        rng: Random,
        *,
        fanout: int,
        incarnation: Incarnation = 0,
        contacts: Sequence[NodeId] = (),
        subscribed: Iterable[Topic] = (),
    ) -> None:
        super().__init__(node, incarnation, subscribed, keep=parameters.buffer)
        self.view: dict[NodeId, int] = dict.fromkeys((one for one in contacts if one != node), 0)
        self._fanout = fanout
        self._parameters = parameters
        self._rng = rng
        self._unanswered = 0
        """Periods since a pull that was not answered; with none, 0."""
        self._sent: tuple[NodeId, ...] = ()
        """Entries of the exchange under way: the first to give way to what comes back."""

    def on_start(self, now: float) -> Effects:
        self._exchange()
        self._set_timer("exchange", now + self._rng.uniform(0, self._parameters.period))
        self._set_timer("pull", now + self._rng.uniform(0, self._parameters.pull))
        return self._take()

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        if timer == "exchange":
            self._exchange()
            self._set_timer("exchange", now + self._parameters.period)
        else:
            self._pull()
            self._set_timer("pull", now + self._parameters.pull)
        return self._take()

    def _pull(self) -> None:
        """One at a time: where processes are busy, more would only make them busier."""
        if self._unanswered:
            self._unanswered = (self._unanswered + 1) % PATIENCE
        elif self.view:
            self._unanswered = 1
            self._send((self._rng.choice(list(self.view)),), Pull(self.digest()))

    def _exchange(self) -> None:
        if not self.view:
            return
        for one in self.view:
            self.view[one] += 1
        oldest = max(self.view, key=lambda one: (self.view[one], one))
        del self.view[oldest]
        self._sent = self._some(self._parameters.exchanged - 1)
        entries = (*((one, self.view[one]) for one in self._sent), (self.node, 0))
        self._send((oldest,), Exchange(entries, answer=False))

    def _on_exchange(self, sender: NodeId, packet: Exchange) -> None:
        check_ids((node for node, _ in packet.entries), MOST_ENTRIES)
        sent = self._sent
        if not packet.answer:
            sent = self._some(self._parameters.exchanged)
            self._send((sender,), Exchange(tuple((one, self.view[one]) for one in sent), answer=True))
        replaceable = [one for one in sent if one in self.view]
        for node, age in packet.entries:
            if node == self.node or node in self.view:
                continue
            if len(self.view) >= self._parameters.view:
                if not replaceable:
                    break
                del self.view[replaceable.pop()]
            self.view[node] = min(max(age, 0), 1 << 20)

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        match packet:
            case Pulled():
                self._accept(sender, packet, spread=False)
            case Message():
                self._accept(sender, packet)
            case Exchange():
                self._on_exchange(sender, packet)
            case Pull():
                if len(packet.digest) > MOST_SOURCES:
                    raise RemoteProtocolError("a digest of more publishers than there may be")
                for one in self.missing_there(packet.digest, PULLED):
                    self._send((sender,), Pulled(one.topic, one.message, one.payloads))
                self._send((sender,), Answered())
            case Answered():
                self._unanswered = 0
            case _:
                raise RemoteProtocolError(f"SimpleGossip knows no {type(packet).__name__}")
        return self._take()

    def _spread(self, sender: NodeId, packet: Message) -> None:
        self._send(self._some(self._fanout), packet)

    def _some(self, count: int) -> tuple[NodeId, ...]:
        known = list(self.view)
        return tuple(self._rng.sample(known, min(count, len(known))))

    def invariants(self) -> None:
        super().invariants()
        assert self.node not in self.view
        assert len(self.view) <= MOST_ENTRIES


GOSSIP_PACKETS: tuple[type[Any], ...] = (Exchange, Pull, Message, Pulled, Answered)
