"""What the systems Brisa is compared with have in common: topics, own publications, and who has got what.

A message that comes for the first time is delivered and passed on, in whatever order; a batch of messages is passed on
whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, NamedTuple

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.contract import Handlers, Packet
from cubecast.protocol.effects import (
    Deliver,
    Effects,
    Link,
    Published,
    Send,
    SetTimer,
    Subscribed,
    Unlink,
    Unsubscribed,
)

MOST_COUNTER = 1 << 48
MOST_LATER = 1024
"""Batches that came before one that is missing; with more, the missing one is given up."""
MOST_SOURCES = 4096


class Source(NamedTuple):
    topic: Topic
    node: NodeId
    incarnation: Incarnation


@dataclass(slots=True)
class Message(Packet):
    """One batch of a source, as it was published."""

    topic: Topic
    message: MessageId
    payloads: tuple[bytes, ...]
    publication: ClassVar[bool] = True


class Received:
    """What came of one source: everything up to a counter, and some behind it."""

    def __init__(self, keep: int) -> None:
        self.upto: Counter = 0
        self.kept: dict[Counter, Message] = {}
        self._keep = keep
        self._later: dict[Counter, Counter] = {}

    def is_new(self, first: Counter, count: int) -> bool:
        if first <= self.upto or first in self._later:
            return False
        self._later[first] = first + count - 1
        if len(self._later) > MOST_LATER:
            self.upto = min(self._later) - 1
        while (last := self._later.pop(self.upto + 1, None)) is not None:
            self.upto = last
        return True

    def keep(self, packet: Message) -> None:
        if self._keep:
            self.kept[packet.message.counter] = packet
            if len(self.kept) > self._keep:
                del self.kept[next(iter(self.kept))]

    def after(self, counter: Counter, most: float) -> Iterator[Message]:
        """Kept batches behind the counter, in their order."""
        sent = 0
        for first in sorted(self.kept) if self.upto > counter or self._later else ():
            if first > counter and sent < most:
                sent += 1
                yield self.kept[first]


class Disseminator(Handlers):
    def __init__(self, node: NodeId, incarnation: Incarnation, subscribed: Iterable[Topic], *, keep: int = 0) -> None:
        self.node = node
        self.incarnation = incarnation
        self.received: dict[Source, Received] = {}
        self._keep = keep
        self._topics = dict.fromkeys(subscribed)
        self._published: dict[Topic, Counter] = {}
        self._effects: Effects = []

    # -- what the application asks for -------------------------------------------------------------------------------

    def publish(self, now: float, topic: Topic, payloads: Sequence[bytes]) -> Effects:
        first = self._published.get(topic, 0) + 1
        self._published[topic] = first + len(payloads) - 1
        self._effects.append(Published(topic, first, len(payloads), ()))
        self._accept(self.node, Message(topic, MessageId(self.node, self.incarnation, first), tuple(payloads)))
        return self._take()

    def subscribe(self, now: float, topic: Topic) -> Effects:
        if topic in self._topics:
            raise LocalProtocolError(f"{topic!r} is subscribed already")
        self._topics[topic] = None
        return [Subscribed(topic)]

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        if topic not in self._topics:
            raise LocalProtocolError(f"{topic!r} is not subscribed here")
        del self._topics[topic]
        return [Unsubscribed(topic)]

    # -- messages ----------------------------------------------------------------------------------------------------

    def _accept(self, sender: NodeId, packet: Message, *, spread: bool = True) -> bool:
        """Whether it is new."""
        source, counter, count = _source(packet), packet.message.counter, len(packet.payloads)
        if not (count and 0 < counter < MOST_COUNTER and min(source.node, source.incarnation) >= 0):
            raise RemoteProtocolError("a message that no process publishes")
        received = self.received.get(source)
        if received is None:
            if len(self.received) >= MOST_SOURCES:
                raise RemoteProtocolError(f"more than {MOST_SOURCES} publishers")
            received = self.received[source] = Received(self._keep)
        if not received.is_new(counter, count):
            return False
        received.keep(packet)
        if packet.topic in self._topics:
            self._effects.append(Deliver(packet.topic, packet.message, packet.payloads))
        if spread:
            self._spread(sender, packet)
        return True

    def _spread(self, sender: NodeId, packet: Message) -> None:
        """Send on what came for the first time."""

    def digest(self) -> tuple[tuple[Source, Counter], ...]:
        """What is here without a hole."""
        return tuple((source, received.upto) for source, received in self.received.items())

    def missing_there(self, digest: Sequence[tuple[Source, Counter]], most: float = inf) -> list[Message]:
        """Kept here and not there, at most so many batches of each source."""
        there = dict(digest)
        return [
            packet
            for source, received in self.received.items()
            for packet in received.after(there.get(source, 0), most)
        ]

    # -- effects -----------------------------------------------------------------------------------------------------

    def _send(self, peers: Iterable[NodeId], packet: Any) -> None:
        if listed := tuple(peers):
            self._effects.append(Send(listed, packet))

    def _set_timer(self, timer: str, at: float) -> None:
        self._effects.append(SetTimer(timer, at))

    def _link(self, peer: NodeId) -> None:
        self._effects.append(Link(peer))

    def _unlink(self, peer: NodeId) -> None:
        self._effects.append(Unlink(peer))

    def _take(self) -> Effects:
        effects, self._effects = self._effects, []
        return effects

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        return []

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        return []

    def waiting(self) -> list[str]:
        return []

    def invariants(self) -> None:
        for received in self.received.values():
            assert not received._later or min(received._later) > received.upto + 1, "what comes next is held"
            assert len(received.kept) <= max(1, self._keep)


def _source(packet: Message) -> Source:
    return Source(packet.topic, packet.message.source, packet.message.incarnation)


def check_ids(ids: Iterable[NodeId], most: int) -> None:
    listed = list(ids)
    if len(listed) > most or any(one < 0 for one in listed):
        raise RemoteProtocolError("ids that no process sends")
