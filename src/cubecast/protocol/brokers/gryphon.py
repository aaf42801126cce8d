"""Gryphon: publishers at the root, subscribers at the leaves (the second system LoCaPS is compared with).

A leaf numbers its subscriptions; they climb to the root, and every broker on the way takes them in that order. What the
root publishes carries how many subscriptions of each leaf it knew of. A broker that knows at least as many filters the
event, one that knows fewer passes it to everybody below; a leaf delivers to a subscription once the root knew of it.
"""

# DEVIATION locaps §3.2.3: both comparisons of versions are printed the other way round, under which a broker would
# filter exactly when it does not know enough, and a leaf deliver exactly what it must not.

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.brokers.baseline_packets import GryphonEvent, GryphonKnown, GryphonSubscribe
from cubecast.protocol.brokers.machine import topic_filter
from cubecast.protocol.brokers.packets import SubscriptionId, Table
from cubecast.protocol.brokers.tree import BrokerTree
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import Cut, Deliver, Effects, Published, Send, Subscribed, Unsubscribed
from cubecast.protocol.filters import ALL, Filter, MatchingIndex, Value, parse
from cubecast.protocol.filters.conditions import from_wire


class Gryphon(Handlers):
    def __init__(self, node: NodeId, tree: BrokerTree, *, root: NodeId = 0, incarnation: Incarnation = 0) -> None:
        self.node = node
        self.incarnation = incarnation
        self._up = tree.side(node, root)
        self._down = tuple(near for near in tree.neighbours[node] if near != self._up)
        self._known: Table = {}
        """How many subscriptions of each leaf this broker knows."""
        self._sides: dict[SubscriptionId, NodeId] = {}
        self._leaves: dict[NodeId, NodeId] = {}
        self._index: MatchingIndex[SubscriptionId] = MatchingIndex()
        self._own: dict[Topic, tuple[int, Filter]] = {}
        self._ready: set[Topic] = set()
        self._cuts: set[tuple[Topic, NodeId, Incarnation]] = set()
        self._numbered = 0
        self._counters: dict[Topic, Counter] = {}

    def on_start(self, now: float) -> Effects:
        return []

    def subscribe(self, now: float, topic: Topic, filter: str | None = None) -> Effects:  # noqa: A002
        if self._down:
            raise LocalProtocolError("in a Gryphon network leaves subscribe; this broker has others below it")
        if topic in self._own:
            raise LocalProtocolError(f"{topic!r} is subscribed already")
        self._numbered += 1
        self._own[topic] = self._numbered, topic_filter(topic, parse(filter) if filter else ALL)
        if self._up is None:
            self._ready.add(topic)
            return [Subscribed(topic)]
        subscription = SubscriptionId(self.node, self.incarnation, self._numbered)
        wire = self._own[topic][1].to_wire()
        return [Send((self._up,), GryphonSubscribe(self.node, self._numbered, subscription, wire))]

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        """At the leaf only: what brokers above know of it costs copies, not correctness."""
        if self._own.pop(topic, None) is None:
            raise LocalProtocolError(f"{topic!r} is not subscribed here")
        self._ready.discard(topic)
        self._cuts = {one for one in self._cuts if one[0] != topic}
        return [Unsubscribed(topic)]

    def publish(
        self, now: float, topic: Topic, payloads: Sequence[bytes], attributes: Mapping[str, Value] | None = None
    ) -> Effects:
        if self._up is not None:
            raise LocalProtocolError("in a Gryphon network the root publishes; this broker has another above it")
        first = self._counters.get(topic, 0) + 1
        self._counters[topic] = first + len(payloads) - 1
        event = {**(attributes or {}), "topic": topic}
        message = MessageId(self.node, self.incarnation, first)
        packet = GryphonEvent(topic, message, event, tuple(payloads), dict(self._known))
        return [Published(topic, first, len(payloads), ()), *self._pass_down(packet)]

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        match packet:
            case GryphonSubscribe():
                return self._climb(packet, sender)
            case GryphonKnown():
                if packet.leaf != self.node:
                    return [Send((self._leaves[packet.leaf],), packet)]
                return self._confirm(packet.number)
            case GryphonEvent():
                return [*self._pass_down(packet), *self._at_leaf(packet)]
        raise RemoteProtocolError(f"a Gryphon broker knows no {type(packet).__name__}")

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        return []

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        return []

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        return []

    def _climb(self, packet: GryphonSubscribe, sender: NodeId) -> Effects:
        if packet.number != self._known.get(packet.leaf, 0) + 1:
            raise RemoteProtocolError(f"subscription {packet.number} of leaf {packet.leaf} is not the next one")
        self._known[packet.leaf] = packet.number
        self._sides[packet.subscription] = self._leaves[packet.leaf] = sender
        self._index.add(packet.subscription, from_wire(packet.wanted))
        if self._up is not None:
            return [Send((self._up,), packet)]
        # The leaf would learn from the next event that the root knows of it; so that it need not wait for one, the root
        # says so at once.
        return [Send((sender,), GryphonKnown(packet.leaf, packet.number))]

    def _pass_down(self, packet: GryphonEvent) -> Effects:
        if all(self._known.get(leaf, 0) >= number for leaf, number in packet.known.items()):
            sides = tuple(sorted({self._sides[one] for one in self._index.matching(packet.attributes)}))
        else:
            sides = self._down
        return [Send(sides, packet)] if sides else []

    def _confirm(self, known: int) -> Effects:
        """The root knows of this many subscriptions of this leaf."""
        news = [topic for topic, (number, _) in self._own.items() if number <= known and topic not in self._ready]
        self._ready.update(news)
        return [Subscribed(topic) for topic in news]

    def _at_leaf(self, packet: GryphonEvent) -> Effects:
        known, topic = packet.known.get(self.node, 0), packet.topic
        effects = self._confirm(known)
        number, wanted = self._own.get(topic, (0, ALL))
        if number and known >= number and wanted.matches(packet.attributes):
            source, incarnation, first = packet.message
            if (topic, source, incarnation) not in self._cuts:
                self._cuts.add((topic, source, incarnation))
                effects.append(Cut(topic, packet.message._replace(counter=first - 1)))
            effects.append(Deliver(topic, packet.message, packet.payloads))
        return effects

    def waiting(self) -> list[str]:
        return [
            f"{topic}: the root does not know of the subscription yet"
            for topic in self._own
            if topic not in self._ready
        ]

    def invariants(self) -> None:
        assert self._up is None or not self._counters, "a broker below the root published"
