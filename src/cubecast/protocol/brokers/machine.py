"""A broker: LoCaPS's tables on LoCaMu's transport, as the drivers see it.

The broker's application is its one client: it publishes to topics, each of which is advertised with its first
publication or by `advertise`, and subscribes to topics, each with a filter over the attributes of messages.
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.brokers.locamu import Substrate
from cubecast.protocol.brokers.locaps import Local, Tables
from cubecast.protocol.brokers.packets import (
    Advertise,
    Copy,
    Event,
    Processed,
    PublisherId,
    Restarted,
    Subscribe,
    SubscriptionId,
    Unadvertise,
    Unsubscribe,
    Unwant,
    Want,
)
from cubecast.protocol.brokers.tree import BrokerTree
from cubecast.protocol.brokers.validation import check_copy
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import (
    CancelTimer,
    Cut,
    Deliver,
    Effects,
    Gap,
    Published,
    Send,
    SetTimer,
    Subscribed,
    Unsubscribed,
)
from cubecast.protocol.filters import ALL, Filter, Value, parse
from cubecast.protocol.filters.conditions import Conjunction, Operator, Term

EMPTY: Mapping[Topic, Sequence[NodeId]] = {}


@dataclass(frozen=True)
class BrokerParameters:
    tree: BrokerTree
    faults: int = 0
    """Crashed brokers that are survived on any path of 2f + 1."""
    covering: bool = True
    ack_delay: float = 50.0
    patience: float = 1000.0
    """How long a copy waits for what must come before it until that is asked for."""
    remove_after: float = 60_000.0
    """How long a broker is suspected before it is given up."""


def topic_filter(topic: Topic, wanted: Filter = ALL) -> Filter:
    """A filter that says which topics it wants is taken as it is: the topic is then only the subscription's name."""
    if all("topic" in one.domains for one in wanted.alternatives):
        return wanted
    return Filter((Conjunction((Term("topic", Operator.EQ, topic),)),)).both(wanted)


class LoCaPS(Handlers):
    def __init__(
        self,
        node: NodeId,
        parameters: BrokerParameters,
        *,
        incarnation: Incarnation = 0,
        settled: Mapping[Topic, Sequence[NodeId]] = EMPTY,
    ) -> None:
        self.node = node
        self.incarnation = incarnation
        self._parameters = parameters
        self._tables = Tables(node, parameters.tree, parameters.faults, covering=parameters.covering)
        self._substrate = Substrate(
            node,
            parameters.tree,
            parameters.faults,
            self._tables.handle,
            ack_delay=parameters.ack_delay,
            patience=parameters.patience,
        )
        self._publishers: dict[Topic, PublisherId] = {}
        self._subscriptions: dict[Topic, SubscriptionId] = {}
        self._unconfirmed: dict[Topic, None] = {}
        self._numbered = 0
        self._counters: dict[Topic, Counter] = {}
        self._waiting: deque[Event | Unadvertise] = deque()
        self._heard = False
        """Has the application been handed anything?"""
        self._first: PublisherId | None = None
        """The publisher it published by first. Until it heard anything only what another one publishes is an effect."""
        if not incarnation:
            self._settle(settled)

    def _settle(self, settled: Mapping[Topic, Sequence[NodeId]]) -> None:
        """Subscriptions that every broker knows from the start; they are confirmed."""
        for number, (topic, nodes) in enumerate(sorted(settled.items())):
            for node in nodes:
                subscription = SubscriptionId(node, 0, -number)
                if node == self.node:
                    self._subscriptions[topic] = subscription
                self._tables.settle(subscription, topic, topic_filter(topic))

    # -- what the application asks for -------------------------------------------------------------------------------

    def on_start(self, now: float) -> Effects:
        """A broker that restarts remembers neither numbers nor tables. It says so, so that the others need not wait for
        its former self, and takes no part: a broker that replaces it has an id of its own."""
        near = tuple(sorted(self._substrate.near))
        return [Send(near, Restarted())] if self.incarnation and near else []

    def _check_part(self) -> None:
        if self.incarnation:
            raise LocalProtocolError("a broker that restarted takes no part; give the one that replaces it a new id")

    def advertise(self, now: float, topic: Topic, template: Filter = ALL) -> Effects:
        """Say what will be published to the topic, so that subscriptions find the way before it is."""
        if topic in self._publishers:
            raise LocalProtocolError(
                f"{topic!r} is advertised already; unadvertise it first to change what it promises"
            )
        self._substrate.now = now
        self._numbered += 1
        publisher = self._publishers[topic] = PublisherId(self.node, self.incarnation, self._numbered)
        wire = topic_filter(topic, template).to_wire()
        self._substrate.post((Advertise(publisher, topic, wire, self._counters.get(topic, 0)), None))
        return self._effects()

    def unadvertise(self, now: float, topic: Topic) -> Effects:
        publisher = self._publishers.pop(topic, None)
        if publisher is None:
            raise LocalProtocolError(f"{topic!r} is not advertised here")
        self._substrate.now = now
        self._waiting.append(Unadvertise(publisher))
        return self._effects()

    def publish(
        self, now: float, topic: Topic, payloads: Sequence[bytes], attributes: Mapping[str, Value] | None = None
    ) -> Effects:
        event = {**(attributes or {}), "topic": topic}
        effects = self.advertise(now, topic) if topic not in self._publishers else []
        publisher = self._publishers[topic]
        template = self._tables.ads[publisher].template
        if not template.matches(event):
            raise LocalProtocolError(f"the message is outside what {topic!r} is advertised with: {template}")
        self._substrate.now = now
        last = self._counters[topic] = self._counters.get(topic, 0) + len(payloads)
        self._waiting.append(Event(publisher, topic, last, event, tuple(payloads)))
        return effects + self._effects()

    def subscribe(self, now: float, topic: Topic, filter: str | None = None) -> Effects:  # noqa: A002
        self._check_part()
        if topic in self._subscriptions:
            raise LocalProtocolError(f"{topic!r} is subscribed already")
        self._substrate.now = now
        self._numbered += 1
        subscription = self._subscriptions[topic] = SubscriptionId(self.node, self.incarnation, self._numbered)
        self._tables.locals[subscription] = Local(topic)
        self._unconfirmed[topic] = None
        self._substrate.post(
            (Subscribe(subscription, topic_filter(topic, parse(filter) if filter else ALL).to_wire()), None)
        )
        return self._effects()

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        subscription = self._subscriptions.pop(topic, None)
        if subscription is None:
            raise LocalProtocolError(f"{topic!r} is not subscribed here")
        self._substrate.now = now
        self._unconfirmed.pop(topic, None)
        self._substrate.post((Unsubscribe(subscription), None))
        return [*self._effects(), Unsubscribed(topic)]

    # -- what happens to it ------------------------------------------------------------------------------------------

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        if self.incarnation:
            return []
        self._substrate.now = now
        match packet:
            case Copy():
                check_copy(packet, self._parameters.tree, self._parameters.faults, self.node)
                self._substrate.receive(packet)
            case Restarted():
                return self._remove(sender) if sender in self._substrate.near else []
            case Processed():
                self._substrate.on_processed(sender, packet)
            case Want():
                self._substrate.on_want(sender, packet)
            case Unwant():
                self._substrate.on_unwant(sender, packet)
            case _:
                raise RemoteProtocolError(f"brokers know no {type(packet).__name__}")
        return self._effects()

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        self._substrate.now = now
        match timer:
            case "processed":
                self._substrate.tell_processed()
            case ("missing", int(broker)):
                self._substrate.on_missing(broker)
            case ("remove", int(broker)):
                return self._remove(broker)
        return self._effects()

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        self._substrate.now = now
        if self.incarnation:
            return []
        if peer in self._substrate.near and peer not in self._substrate.suspects:
            self._substrate.suspect(peer)
            self._substrate.effects.append(SetTimer(("remove", peer), now + self._parameters.remove_after))
        return self._effects()

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        self._substrate.now = now
        if self.incarnation:
            return []
        if peer in self._substrate.suspects:
            self._substrate.effects.append(CancelTimer(("remove", peer)))
        self._substrate.trust(peer)
        return self._effects()

    def _remove(self, broker: NodeId) -> Effects:
        if broker in self._substrate.removed:
            return []
        given_up = self._substrate.remove(broker)
        gaps: Effects = [gap for copy in given_up for gap in self._gaps(copy)]
        self._substrate.post(*self._tables.remove(broker))
        return gaps + self._effects()

    def _gaps(self, copy: Copy) -> Effects:
        """An event that will never be complete here, for each of the subscriptions it is for."""
        if not isinstance(copy.body, Event):
            return []
        event = copy.body
        first = event.last - len(event.payloads) + 1
        missing = tuple(_message(event.publisher, counter) for counter in range(first, event.last + 1))
        wanted = set(self._tables.index.matching(event.attributes))
        topics = [topic for topic, subscription in self._subscriptions.items() if subscription in wanted]
        return [Gap(topic, missing, f"broker {event.publisher.broker} is gone") for topic in topics]

    # -- effects -----------------------------------------------------------------------------------------------------

    def _effects(self) -> Effects:
        """What the step led to, and what may leave now."""
        told: Effects = []
        while True:
            self._tell(told)
            if not self._waiting or not self._may_leave(self._waiting[0]):
                break
            self._leave(self._waiting.popleft(), told)
        sent, self._substrate.effects = self._substrate.effects, []
        return told + sent

    def _may_leave(self, waiting: Event | Unadvertise) -> bool:
        """A publisher not everybody knows of publishes no effects: its cause might overtake it where it is unknown."""
        if isinstance(waiting, Unadvertise):
            return True
        no_effect = not self._heard and self._first in (None, waiting.publisher)
        return no_effect or self._tables.ads[waiting.publisher].known

    def _leave(self, waiting: Event | Unadvertise, told: Effects) -> None:
        if isinstance(waiting, Event):
            self._first = self._first or waiting.publisher
            self._tables.ads[waiting.publisher].count = waiting.last
            count = len(waiting.payloads)
            first = waiting.last - count + 1
            told.append(Published(waiting.topic, first, count, (), waiting.payloads, waiting.attributes))
        self._substrate.post((waiting, None))

    def _tell(self, told: Effects) -> None:
        tables = self._tables
        for subscription, publisher, last in tables.cuts:
            local = tables.locals.get(subscription)
            if local is not None:
                told.append(Cut(local.topic, _message(publisher, last)))
        tables.cuts.clear()
        for event in tables.deliveries:
            self._heard = True
            told.append(Deliver(event.topic, event.message, event.payloads))
        tables.deliveries.clear()
        for topic in list(self._unconfirmed):
            subscription = self._subscriptions[topic]
            if tables.settled(subscription):
                del self._unconfirmed[topic]
                told.append(Subscribed(topic))

    # -- for people and tests ----------------------------------------------------------------------------------------

    def waiting(self) -> list[str]:
        lines = self._substrate.waiting()
        lines += (
            [f"{len(self._waiting)} publications wait until all brokers know their publisher"] if self._waiting else []
        )
        for local in self._tables.locals.values():
            if local.queue:
                lines.append(f"{local.topic}: {len(local.queue)} events wait for where the subscription begins")
        return lines

    def invariants(self) -> None:
        self._substrate.invariants()
        self._tables.invariants()


def _message(publisher: PublisherId, counter: Counter) -> MessageId:
    return MessageId(publisher.broker, publisher.incarnation, counter)
