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
from cubecast.protocol.brokers.bundles import bundles, runs_of
from cubecast.protocol.brokers.entries import Local, Source, Wanted
from cubecast.protocol.brokers.locamu import Substrate
from cubecast.protocol.brokers.locaps import Tables
from cubecast.protocol.brokers.packets import (
    Advertise,
    Alive,
    Copy,
    Event,
    Living,
    Processed,
    PublisherId,
    Removed,
    Restarted,
    Restore,
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
    Observe,
    Published,
    Reincarnated,
    Released,
    Send,
    SetTimer,
    Subscribed,
    Unsubscribed,
)
from cubecast.protocol.filters import ALL, Attributes, Filter, parse
from cubecast.protocol.filters.conditions import Conjunction, Operator, Term

SILENT_BEATS = 4
MOST_NAMED = 1000
"""Messages in a gap; where more may be missing it names none."""
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
    wait_until_known: bool = False
    """Nothing is published before all brokers know its publisher; otherwise an application that heard nothing yet need
    not wait, and subscriptions may begin behind its first messages."""
    heartbeat: float = 0.0
    """How often a broker says that it lives; one that was silent four times as long is suspected. 0: drivers tell."""


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
        self._down: set[NodeId] = set()
        """Peers that the driver, or their silence, says are not there."""
        self._last_word: dict[NodeId, float] = {}
        self._begin()
        if not incarnation:
            self._settle(settled)

    def _begin(self) -> None:
        """A life, of which no broker knows anything yet, nor it of anybody."""
        parameters = self._parameters
        self._tables = Tables(self.node, parameters.tree, parameters.faults, covering=parameters.covering)
        self._substrate = Substrate(
            self.node,
            parameters.tree,
            parameters.faults,
            self._tables.handle,
            ack_delay=parameters.ack_delay,
            patience=parameters.patience,
            life=self.incarnation,
        )
        self._publishers: dict[Topic, PublisherId] = {}
        self._promised: dict[Topic, str] = {}
        self._subscriptions: dict[Topic, SubscriptionId] = {}
        self._filters: dict[Topic, str | None] = {}
        self._unconfirmed: dict[Topic, None] = {}
        self._numbered = 0
        self._counters: dict[Topic, Counter] = {}
        self._released: dict[Topic, Counter] = {}
        """Everybody nearby has these and the ones before, or what was issued later overtook them."""
        self._waiting: deque[Event | Unadvertise] = deque()
        self._heard = False
        """Has the application been handed anything?"""
        self._first: PublisherId | None = None
        """The publisher it published by first. Until it heard anything only what another one publishes is an effect."""
        self._unheard = set(parameters.tree.neighbours[self.node]) if self.incarnation else set()
        """Neighbours that have not told yet what is on their side."""
        self._rejoining: dict[NodeId, Incarnation] = {}
        """Brokers that began another life, of whose last one others may still have something."""

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
        """A broker that restarts remembers neither numbers nor tables. It says so; the others take it back."""
        self._substrate.now = now
        near = tuple(sorted(self._substrate.near))
        effects: Effects = [Send(near, Restarted(self.incarnation))] if self.incarnation and near else []
        if self._parameters.heartbeat and near:
            self._last_word = dict.fromkeys(near, now)
            effects.append(SetTimer("heartbeat", now + self._parameters.heartbeat))
        return effects

    @property
    def is_active(self) -> bool:
        """Does it know what is on the side of every neighbour that is there?"""
        return not self._unheard - self._down - self._substrate.removed

    def advertise(self, now: float, topic: Topic, filter: str | None = None) -> Effects:  # noqa: A002
        """Say what will be published to the topic, so that subscriptions find the way before it is."""
        if topic in self._publishers:
            raise LocalProtocolError(
                f"{topic!r} is advertised already; unadvertise it first to change what it promises"
            )
        self._substrate.now = now
        if filter:
            self._promised[topic] = filter
        self._numbered += 1
        publisher = self._publishers[topic] = PublisherId(self.node, self.incarnation, self._numbered)
        wire = topic_filter(topic, parse(filter) if filter else ALL).to_wire()
        self._substrate.post((Advertise(publisher, topic, wire, self._counters.get(topic, 0)), None))
        return self._effects()

    def unadvertise(self, now: float, topic: Topic) -> Effects:
        publisher = self._publishers.pop(topic, None)
        if publisher is None:
            raise LocalProtocolError(f"{topic!r} is not advertised here")
        self._substrate.now = now
        self._promised.pop(topic, None)
        self._waiting.append(Unadvertise(publisher, self._counters.get(topic, 0)))
        return self._effects()

    def publish(
        self,
        now: float,
        topic: Topic,
        payloads: Sequence[bytes],
        attributes: Attributes | Sequence[Attributes] | None = None,
        hurry: bool = False,
    ) -> Effects:
        runs = runs_of(topic, payloads, attributes)
        effects = self.advertise(now, topic) if topic not in self._publishers else []
        publisher = self._publishers[topic]
        template = self._tables.ads[publisher].template
        if not all(template.matches(run.attributes) for run in runs):
            raise LocalProtocolError(f"a message is outside what {topic!r} is advertised with: {template}")
        self._substrate.now = now
        last = self._counters[topic] = self._counters.get(topic, 0) + len(payloads)
        self._waiting.append(Event(publisher, topic, last, runs))
        return effects + self._effects()

    def subscribe(self, now: float, topic: Topic, filter: str | None = None) -> Effects:  # noqa: A002
        if topic in self._subscriptions:
            raise LocalProtocolError(f"{topic!r} is subscribed already")
        wanted = topic_filter(topic, parse(filter) if filter else ALL)
        self._substrate.now = now
        self._numbered += 1
        subscription = self._subscriptions[topic] = SubscriptionId(self.node, self.incarnation, self._numbered)
        self._tables.locals[subscription] = Local(topic)
        self._unconfirmed[topic] = None
        if self._tables.looked_for is not None:
            self._tables.looked_for.add(subscription)
        self._filters[topic] = filter
        self._substrate.post((Subscribe(subscription, wanted.to_wire()), None))
        return self._effects()

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        subscription = self._subscriptions.pop(topic, None)
        if subscription is None:
            raise LocalProtocolError(f"{topic!r} is not subscribed here")
        self._substrate.now = now
        self._unconfirmed.pop(topic, None)
        self._filters.pop(topic, None)
        self._substrate.post((Unsubscribe(subscription), None))
        return [*self._effects(), Unsubscribed(topic)]

    def on_reader(self, now: float, topic: Topic, reads: bool) -> Effects:
        """Clients that do not read hold up their subscription, and not what others get through this broker."""
        self._substrate.now = now
        if topic in self._subscriptions:
            self._tables.reads(self._subscriptions[topic], reads)
        return self._effects()

    # -- what happens to it ------------------------------------------------------------------------------------------

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        self._substrate.now = now
        back = self._hear(now, sender)
        if sender in self._substrate.removed and not isinstance(packet, Restarted | Living):
            life = self._substrate.received.lives.get(sender, 0)
            return [*back, Send((sender,), Removed(life))] if sender not in self._rejoining else back
        return back + self._take(now, sender, packet)

    def _take(self, now: float, sender: NodeId, packet: Any) -> Effects:
        match packet:
            case Copy():
                check_copy(packet, self._parameters.tree, self._parameters.faults)
                self._substrate.receive(packet)
                if isinstance(packet.body, Restore) and packet.body.is_last:
                    self._unheard.discard(self._parameters.tree.side(self.node, packet.header.origin) or sender)
            case Restarted(life):
                return self._restarted(sender, life) if sender in self._substrate.near else []
            case Living(life):
                is_news = sender in self._substrate.near and life > self._rejoining.get(sender, 0)
                if is_news and not self._substrate.learn_life(sender, life):
                    return self._restarted(sender, life)
            case Removed(life):
                return self._begin_again(now) if sender in self._substrate.near and life >= self.incarnation else []
            case Alive():
                pass
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
            case ("forget", int(broker)):
                self._tables.forget_subscriptions(broker)
            case "heartbeat":
                return self._beat(now)
        return self._effects()

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        self._substrate.now = now
        self._down.add(peer)
        if peer in self._substrate.near and peer not in self._substrate.suspects:
            self._substrate.suspect(peer)
            self._substrate.effects.append(SetTimer(("remove", peer), now + self._parameters.remove_after))
        return self._effects()

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        self._substrate.now = now
        self._down.discard(peer)
        self._last_word[peer] = now
        if self.incarnation and peer in self._substrate.near:
            word = Restarted if self._unheard else Living
            self._substrate.effects.append(Send((peer,), word(self.incarnation)))
        if peer not in self._rejoining:
            if peer in self._substrate.suspects:
                self._substrate.effects.append(CancelTimer(("remove", peer)))
            self._substrate.trust(peer)
        return self._effects()

    # -- who lives ---------------------------------------------------------------------------------------------------

    def _beat(self, now: float) -> Effects:
        """Say that this broker lives, and look who did not say so for long."""
        every = self._parameters.heartbeat
        effects: Effects = [Send(tuple(sorted(self._substrate.near)), Alive()), SetTimer("heartbeat", now + every)]
        for peer in sorted(self._substrate.near - self._down):
            if now - self._last_word.get(peer, now) > SILENT_BEATS * every:
                effects += self.on_peer_down(now, peer)
        return effects

    def _hear(self, now: float, peer: NodeId) -> Effects:
        if not self._parameters.heartbeat:
            return []
        self._last_word[peer] = now
        return self.on_peer_up(now, peer) if peer in self._down else []

    def _remove(self, broker: NodeId) -> Effects:
        if broker not in self._substrate.removed:
            self._tables.removed.add(broker)
            self._substrate.remove(broker)
            self._substrate.post(*self._tables.remove(broker, self._substrate.received.lives.get(broker, 0)))
            after = self._substrate.now + self._parameters.remove_after
            self._substrate.effects.append(SetTimer(("forget", broker), after))
        if broker in self._rejoining:
            self._admit(broker, self._rejoining.pop(broker))
        return self._effects()

    def _restarted(self, broker: NodeId, life: Incarnation) -> Effects:
        """Its former life is over, and what no other broker has of it is lost. First the others are asked what they
        have: a message that was waited for must not come when it is waited for no longer."""
        substrate = self._substrate
        if life <= max(substrate.received.lives.get(broker, 0), self._rejoining.get(broker, 0)):
            return []
        self._rejoining[broker] = life
        if self.incarnation:
            substrate.effects.append(Send((broker,), Living(self.incarnation)))
        if substrate.is_new or broker in substrate.removed:
            return self._remove(broker)
        substrate.suspect(broker)
        substrate.effects.append(SetTimer(("remove", broker), substrate.now + 2 * self._parameters.patience))
        return self._effects()

    def _admit(self, broker: NodeId, life: Incarnation) -> None:
        """Take it back, and tell it what is on this side, unless a broker between the two does."""
        substrate, tree = self._substrate, self._parameters.tree
        substrate.admit(broker, life)
        between = tree.path(self.node, broker)[:-1]
        tells = all(one in substrate.suspects | substrate.removed for one in between)
        substrate.post(*self._tables.admit(broker, tells=tells))
        if broker in self._down:
            substrate.suspect(broker)
            substrate.effects.append(SetTimer(("remove", broker), substrate.now + self._parameters.remove_after))

    def _begin_again(self, now: float) -> Effects:
        """The others gave this broker up while it was silent: it comes back as one that restarted."""
        filters, topics, promised = self._filters, dict(self._subscriptions), self._promised
        timers = [CancelTimer(("missing", peer)) for peer in sorted(self._substrate.near)]
        timers += [CancelTimer(("remove", peer)) for peer in sorted(self._substrate.near)]
        self.incarnation += 1
        self._begin()
        effects: Effects = [*timers, Reincarnated(self.incarnation, tuple(topics)), *self.on_start(now)]
        for topic in topics:
            effects += self.subscribe(now, topic, filters.get(topic))
        for topic, filter in promised.items():  # noqa: A001
            effects += self.advertise(now, topic, filter)
        return effects

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
        first = not self._heard and self._first in (None, waiting.publisher)
        no_effect = first and not self._parameters.wait_until_known
        return no_effect or self._tables.ads[waiting.publisher].known

    def _leave(self, waiting: Event | Unadvertise, told: Effects) -> None:
        if isinstance(waiting, Unadvertise):
            self._substrate.post((waiting, None))
            return
        self._first = self._first or waiting.publisher
        ad = self._tables.ads[waiting.publisher]
        for event in bundles(waiting, self._tables.interests.destinations):
            counter = event.last - event.size + 1
            for attributes, payloads in event.runs:
                told.append(Published(event.topic, counter, len(payloads), (), payloads, attributes))
                counter += len(payloads)
            ad.count = event.last
            self._substrate.post((event, None))

    def _tell(self, told: Effects) -> None:
        tables = self._tables
        for body in self._substrate.repeated:
            if isinstance(body, Event):
                tables.repeated(body)
        self._substrate.repeated.clear()
        for subscription, publisher, last in tables.cuts:
            local = tables.locals.get(subscription)
            if local is not None:
                _state(local, publisher[:2], last, told)
        tables.cuts.clear()
        for _, wanted in tables.discarded:
            reason = "it comes before the subscription begins"
            told += [Observe("discard", wanted.topic, one, detail=reason) for one in _messages(wanted)]
        tables.discarded.clear()
        for name, wanted, lost in tables.deliveries:
            self._heard = True
            if lost:
                source = wanted.publisher
                named = [_message(source, counter) for counter in lost] if len(lost) <= MOST_NAMED else []
                told.append(Gap(name, named, f"broker {source.broker} is gone"))
            other = None if name == wanted.topic else name
            for first, payloads in wanted.pieces:
                told.append(Deliver(wanted.topic, _message(wanted.publisher, first), payloads, None, other))
        tables.deliveries.clear()
        for record in self._substrate.closed():
            if isinstance(record.body, Event) and record.body.publisher[:2] == (self.node, self.incarnation):
                self._release(record.body, told)
        self._confirm(told)

    def _release(self, event: Event, told: Effects) -> None:
        if event.last > self._released.get(event.topic, 0):
            self._released[event.topic] = event.last
            told.append(Released(event.topic, event.last))

    def _confirm(self, told: Effects) -> None:
        """Those of which every beginning is known by now."""
        tables = self._tables
        changed, tables.looked_for = tables.looked_for, set()
        if changed is None:
            topics = list(self._unconfirmed)
        elif changed:
            topics = [tables.locals[one].topic for one in sorted(changed) if one in tables.locals]
        else:
            return
        for topic in topics:
            if topic in self._unconfirmed and tables.settled(self._subscriptions[topic]):
                del self._unconfirmed[topic]
                local = tables.locals[self._subscriptions[topic]]
                for source, last in local.over.items():
                    _state(local, source, last, told)
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


def _messages(wanted: Wanted) -> tuple[MessageId, ...]:
    return tuple(
        _message(wanted.publisher, first + place) for first, payloads in wanted.pieces for place in range(len(payloads))
    )


def _state(local: Local, source: Source, last: Counter, told: Effects) -> None:
    if source not in local.stated:
        local.stated.add(source)
        told.append(Cut(local.topic, MessageId(*source, last)))


def _message(publisher: PublisherId, counter: Counter) -> MessageId:
    return MessageId(publisher.broker, publisher.incarnation, counter)
