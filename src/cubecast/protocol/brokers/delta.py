"""Delta, which LoCaPS is compared with: a subscription is flooded and begins when everybody acknowledged it.

A leaf acknowledges at once, a broker when all behind it did; the subscriber's broker delivers from the last one on. A
publisher has one publication in transit: the next leaves when everybody it was for has it.
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.brokers.baseline_packets import (
    DeltaEvent,
    DeltaEventDone,
    DeltaSubscribe,
    DeltaSubscribed,
    DeltaUnsubscribe,
)
from cubecast.protocol.brokers.machine import EMPTY, topic_filter
from cubecast.protocol.brokers.packets import SubscriptionId
from cubecast.protocol.brokers.tree import BrokerTree
from cubecast.protocol.brokers.validation import read_filter
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import Acknowledged, Cut, Deliver, Effects, Published, Send, Subscribed, Unsubscribed
from cubecast.protocol.filters import ALL, Filter, MatchingIndex, Value, parse


@dataclass(slots=True)
class Entry:
    side: NodeId | None
    unheard: set[NodeId] = field(default_factory=set)
    """Neighbours whose acknowledgement is missing."""


class Delta(Handlers):
    def __init__(
        self,
        node: NodeId,
        tree: BrokerTree,
        *,
        incarnation: Incarnation = 0,
        settled: Mapping[Topic, Sequence[NodeId]] = EMPTY,
    ) -> None:
        self.node = node
        self.incarnation = incarnation
        self._neighbours = tree.neighbours[node]
        self._entries: dict[SubscriptionId, Entry] = {}
        self._index: MatchingIndex[SubscriptionId] = MatchingIndex()
        self._subscriptions: dict[Topic, SubscriptionId] = {}
        self._ready: set[Topic] = set()
        self._cuts: set[tuple[Topic, NodeId, Incarnation]] = set()
        self._numbered = 0
        self._counters: dict[Topic, Counter] = {}
        self._queue: deque[tuple[Topic, dict[str, Value], tuple[bytes, ...]]] = deque()
        self._transit: dict[tuple[Topic, MessageId], tuple[NodeId | None, set[NodeId]]] = {}
        """Publications some neighbours have not finished with: where each came from, and who they are."""
        for number, (topic, nodes) in enumerate(sorted(settled.items())):
            for one in nodes:
                subscription = SubscriptionId(one, 0, -number)
                self._entries[subscription] = Entry(tree.side(node, one))
                self._index.add(subscription, topic_filter(topic))
                if one == node:
                    self._subscriptions[topic] = subscription
                    self._ready.add(topic)

    def on_start(self, now: float) -> Effects:
        return []

    def subscribe(self, now: float, topic: Topic, filter: str | None = None) -> Effects:  # noqa: A002
        if topic in self._subscriptions:
            raise LocalProtocolError(f"{topic!r} is subscribed already")
        self._numbered += 1
        subscription = self._subscriptions[topic] = SubscriptionId(self.node, self.incarnation, self._numbered)
        return self._record(subscription, topic_filter(topic, parse(filter) if filter else ALL), None)

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        subscription = self._subscriptions.pop(topic, None)
        if subscription is None:
            raise LocalProtocolError(f"{topic!r} is not subscribed here")
        self._ready.discard(topic)
        self._cuts = {one for one in self._cuts if one[0] != topic}
        return [*self._forget(subscription, None), Unsubscribed(topic)]

    def publish(
        self, now: float, topic: Topic, payloads: Sequence[bytes], attributes: Mapping[str, Value] | None = None
    ) -> Effects:
        self._queue.append((topic, {**(attributes or {}), "topic": topic}, tuple(payloads)))
        return self._next()

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        if sender not in self._neighbours:
            raise RemoteProtocolError(f"broker {sender} is no neighbour")
        match packet:
            case DeltaEvent():
                return self._event(packet, sender)
            case DeltaEventDone():
                return self._done(packet, sender)
            case DeltaSubscribe():
                return self._record(packet.subscription, read_filter(packet.wanted), sender)
            case DeltaSubscribed():
                entry = self._entries.get(packet.subscription)
                if entry is None:
                    return []
                entry.unheard.discard(sender)
                return self._acknowledge(packet.subscription, entry)
            case DeltaUnsubscribe():
                return self._forget(packet.subscription, sender)
        raise RemoteProtocolError(f"a Delta broker knows no {type(packet).__name__}")

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        return []

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        return []

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        return []

    def _record(self, subscription: SubscriptionId, wanted: Filter, side: NodeId | None) -> Effects:
        if subscription in self._entries or (side is not None and subscription.broker == self.node):
            return []
        further = tuple(near for near in self._neighbours if near != side)
        entry = self._entries[subscription] = Entry(side, set(further))
        self._index.add(subscription, wanted)
        sent: Effects = [Send(further, DeltaSubscribe(subscription, wanted.to_wire()))] if further else []
        return sent + self._acknowledge(subscription, entry)

    def _acknowledge(self, subscription: SubscriptionId, entry: Entry) -> Effects:
        if entry.unheard:
            return []
        if entry.side is not None:
            return [Send((entry.side,), DeltaSubscribed(subscription))]
        topic = next(topic for topic, one in self._subscriptions.items() if one == subscription)
        self._ready.add(topic)
        return [Subscribed(topic)]

    def _forget(self, subscription: SubscriptionId, side: NodeId | None) -> Effects:
        if self._entries.pop(subscription, None) is None:
            return []
        self._index.discard(subscription)
        further = tuple(near for near in self._neighbours if near != side)
        return [Send(further, DeltaUnsubscribe(subscription))] if further else []

    def _next(self) -> Effects:
        """One publication of this broker's at a time."""
        if not self._queue or any(origin is None for origin, _ in self._transit.values()):
            return []
        topic, attributes, payloads = self._queue.popleft()
        first = self._counters.get(topic, 0) + 1
        self._counters[topic] = first + len(payloads) - 1
        message = MessageId(self.node, self.incarnation, first)
        published = Published(topic, first, len(payloads), (), payloads, attributes)
        return [published, *self._event(DeltaEvent(topic, message, attributes, payloads), None)]

    def _event(self, event: DeltaEvent, side: NodeId | None) -> Effects:
        effects: Effects = []
        sides: dict[NodeId, None] = {}
        for subscription in self._index.matching(event.attributes):
            towards = self._entries[subscription].side
            if towards is None:
                effects += self._deliver(event)
            elif towards != side:
                sides[towards] = None
        if sides:
            self._transit[event.topic, event.message] = (side, set(sides))
            return [*effects, Send(tuple(sides), event)]
        return effects + self._finished(event.topic, event.message, side)

    def _deliver(self, event: DeltaEvent) -> Effects:
        if event.topic not in self._ready:
            return []
        source, incarnation, first = event.message
        known = (event.topic, source, incarnation)
        cut: Effects = [] if known in self._cuts else [Cut(event.topic, event.message._replace(counter=first - 1))]
        self._cuts.add(known)
        return [*cut, Deliver(event.topic, event.message, event.payloads)]

    def _done(self, packet: DeltaEventDone, sender: NodeId) -> Effects:
        transit = self._transit.get((packet.topic, packet.message))
        if transit is None:
            return []
        side, unfinished = transit
        unfinished.discard(sender)
        if unfinished:
            return []
        del self._transit[packet.topic, packet.message]
        return self._finished(packet.topic, packet.message, side)

    def _finished(self, topic: Topic, message: MessageId, side: NodeId | None) -> Effects:
        if side is not None:
            return [Send((side,), DeltaEventDone(topic, message))]
        return [Acknowledged(topic, self._counters[topic]), *self._next()]  # one in transit: it is the last

    def waiting(self) -> list[str]:
        lines = [
            f"{topic}: neighbours {sorted(near)} have not finished" for (topic, _), (_, near) in self._transit.items()
        ]
        return lines + ([f"{len(self._queue)} publications wait for the one in transit"] if self._queue else [])

    def invariants(self) -> None:
        own = sum(origin is None for origin, _ in self._transit.values())
        assert own <= 1, "more than one publication of this broker is in transit"
