"""Gryphon, which LoCaPS is compared with: events come from the root, versions say who knows which subscription.

A broker numbers its own subscriptions; they climb to the root, and every broker on the way takes them in that order.
What is published anywhere climbs to the root too, and leaves it with how many subscriptions of each broker the root
knows of. A broker that knows at least as many filters the event, one that knows fewer passes it to everybody below; a
subscription gets it once the root knew of it.
"""

# DEVIATION locaps §3.2.3: both comparisons of versions are printed the other way round, under which a broker would
# filter exactly when it does not know enough, and a leaf deliver exactly what it must not.

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.brokers.baseline_packets import GryphonEvent, GryphonKnown, GryphonPublish, GryphonSubscribe
from cubecast.protocol.brokers.machine import EMPTY, topic_filter
from cubecast.protocol.brokers.packets import SubscriptionId, Table
from cubecast.protocol.brokers.tree import BrokerTree
from cubecast.protocol.brokers.validation import read_filter
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import Cut, Deliver, Effects, Published, Send, Subscribed, Unsubscribed
from cubecast.protocol.filters import ALL, Filter, MatchingIndex, Value, parse


class Gryphon(Handlers):
    def __init__(
        self,
        node: NodeId,
        tree: BrokerTree,
        *,
        root: NodeId = 0,
        incarnation: Incarnation = 0,
        settled: Mapping[Topic, Sequence[NodeId]] = EMPTY,
    ) -> None:
        self.node = node
        self.incarnation = incarnation
        self._up = tree.side(node, root)
        self._down = tuple(near for near in tree.neighbours[node] if near != self._up)
        self._known: Table = {}
        """How many subscriptions of each broker this one knows."""
        self._sides: dict[SubscriptionId, NodeId] = {}
        self._index: MatchingIndex[SubscriptionId] = MatchingIndex()
        self._own: dict[Topic, tuple[int, Filter]] = {}
        self._ready: set[Topic] = set()
        self._cuts: set[tuple[Topic, NodeId, Incarnation]] = set()
        self._counters: dict[Topic, Counter] = {}
        for topic, nodes in sorted(settled.items()):
            for one in nodes:
                self._enter_settled(one, topic, tree)

    def _enter_settled(self, broker: NodeId, topic: Topic, tree: BrokerTree) -> None:
        number = self._known[broker] = self._known.get(broker, 0) + 1
        if broker == self.node:
            self._own[topic] = number, topic_filter(topic)
            self._ready.add(topic)
        elif tree.side(self.node, broker) != self._up:
            subscription = SubscriptionId(broker, 0, number)
            self._sides[subscription] = tree.path(self.node, broker)[0]
            self._index.add(subscription, topic_filter(topic))

    def on_start(self, now: float) -> Effects:
        return []

    def subscribe(self, now: float, topic: Topic, filter: str | None = None) -> Effects:  # noqa: A002
        if topic in self._own:
            raise LocalProtocolError(f"{topic!r} is subscribed already")
        number = self._known[self.node] = self._known.get(self.node, 0) + 1
        self._own[topic] = number, topic_filter(topic, parse(filter) if filter else ALL)
        if self._up is None:
            return self._confirm(number)
        subscription = SubscriptionId(self.node, self.incarnation, number)
        return [Send((self._up,), GryphonSubscribe(subscription, self._own[topic][1].to_wire()))]

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        """Here only: what brokers above know of it costs copies, not correctness."""
        if self._own.pop(topic, None) is None:
            raise LocalProtocolError(f"{topic!r} is not subscribed here")
        self._ready.discard(topic)
        self._cuts = {one for one in self._cuts if one[0] != topic}
        return [Unsubscribed(topic)]

    def publish(
        self, now: float, topic: Topic, payloads: Sequence[bytes], attributes: Mapping[str, Value] | None = None
    ) -> Effects:
        first = self._counters.get(topic, 0) + 1
        self._counters[topic] = first + len(payloads) - 1
        event = {**(attributes or {}), "topic": topic}
        packet = GryphonPublish(topic, MessageId(self.node, self.incarnation, first), event, tuple(payloads))
        return [Published(topic, first, len(payloads), (), payloads, event), *self._climb_event(packet)]

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        if sender != self._up and sender not in self._down:
            raise RemoteProtocolError(f"broker {sender} is no neighbour")
        match packet:
            case GryphonEvent() if sender == self._up:
                return [*self._pass_down(packet), *self._deliver(packet)]
            case GryphonKnown() if sender == self._up:
                return self._on_known(packet)
            case GryphonPublish() if sender != self._up:
                return self._climb_event(packet)
            case GryphonSubscribe() if sender != self._up:
                return self._climb(packet, sender)
        raise RemoteProtocolError(f"broker {sender} sends no {type(packet).__name__} this way")

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        return []

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        return []

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        return []

    def _climb(self, packet: GryphonSubscribe, sender: NodeId) -> Effects:
        broker, _, number = packet.subscription
        wanted = read_filter(packet.wanted)
        if number != self._known.get(broker, 0) + 1 or broker == self.node:
            raise RemoteProtocolError(f"subscription {number} of broker {broker} is not the next one")
        self._known[broker] = number
        self._sides[packet.subscription] = sender
        self._index.add(packet.subscription, wanted)
        if self._up is not None:
            return [Send((self._up,), packet)]
        # The subscriber would learn from the next event that the root knows of it; so that it need not wait for one,
        # the root says so at once.
        return [Send((sender,), GryphonKnown(packet.subscription))]

    def _on_known(self, packet: GryphonKnown) -> Effects:
        if packet.subscription.broker == self.node:
            return self._confirm(packet.subscription.number)
        side = self._sides.get(packet.subscription)
        if side is None:
            raise RemoteProtocolError("the root knows of a subscription that never passed here")
        return [Send((side,), packet)]

    def _climb_event(self, packet: GryphonPublish) -> Effects:
        if self._up is not None:
            return [Send((self._up,), packet)]
        event = GryphonEvent(packet.topic, packet.message, packet.attributes, packet.payloads, dict(self._known))
        return [*self._pass_down(event), *self._deliver(event)]

    def _pass_down(self, packet: GryphonEvent) -> Effects:
        if all(self._known.get(broker, 0) >= number for broker, number in packet.known.items() if self._below(broker)):
            sides = tuple(sorted({self._sides[one] for one in self._index.matching(packet.attributes)}))
        else:
            sides = self._down
        return [Send(sides, packet)] if sides else []

    def _below(self, broker: NodeId) -> bool:
        """Does a subscription of that broker pass here on its way to the root, as far as is known?"""
        return broker in self._known and broker != self.node

    def _confirm(self, known: int) -> Effects:
        """The root knows of this many subscriptions of this broker."""
        news = [topic for topic, (number, _) in self._own.items() if number <= known and topic not in self._ready]
        self._ready.update(news)
        return [Subscribed(topic) for topic in news]

    def _deliver(self, packet: GryphonEvent) -> Effects:
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
        assert self._ready <= self._own.keys(), "a subscription that is not there was confirmed"
