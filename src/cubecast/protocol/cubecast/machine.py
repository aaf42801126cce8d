"""The cubecast machine: what arrives, what it may do, in which order.

Rules it obeys (docs/protocol.md argues for each):
 1. A packet from an incarnation held faulty is fenced: nothing in it counts, its sender is told.
 2. Verdicts in a packet are adopted before anything else in it is looked at.
 3. A node that learns that somebody it lives with holds it faulty ends this incarnation and joins as the next one.
 4. Destinations are fixed by the source; being addressed is being subscribed, so views merge destinations on arrival.
 5. Forward, then deliver; deliver when every dependency is delivered, excused, or settled as lost.
 6. Publish only when an own wave is complete and the window is open.
Every entry point runs to completion: handle, conclude what faulty nodes left, publish what may be published.
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, assert_never

from cubecast.errors import LocalProtocolError
from cubecast.ids import Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.contract import call_handler
from cubecast.protocol.cubecast.delivery import Dropped
from cubecast.protocol.cubecast.inspection import describe, lines_of_waiting
from cubecast.protocol.cubecast.interests import Wishes
from cubecast.protocol.cubecast.ledger import ProcessMemory
from cubecast.protocol.cubecast.lifetime import Expelled, Lifetime
from cubecast.protocol.cubecast.packets import (
    Ack,
    AnyPacket,
    Ask,
    Convoy,
    Hello,
    Inquiry,
    Introduction,
    MissingReport,
    MissingReportAck,
    Obituary,
    Settle,
    SettlePart,
    Stable,
    Test,
    TopicList,
    Wave,
    WaveAck,
    Welcome,
)
from cubecast.protocol.cubecast.parameters import Detection, Parameters, Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.topics import TopicState
from cubecast.protocol.cubecast.validation import Validator
from cubecast.protocol.cubecast.vocabulary import Entry, Life
from cubecast.protocol.effects import (
    Effects,
    Gap,
    InterestKnown,
    Observe,
    Reincarnated,
    SetTimer,
)
from cubecast.protocol.inputs import Input, Interest
from cubecast.protocol.masks import ids_of


class Cubecast:
    """One node. `initial` names, per topic, the nodes (a mask) that subscribed before the start of incarnation 0;
    `contacts` (a mask) those that it knows of as it starts."""

    def __init__(
        self,
        node: NodeId,
        parameters: Parameters,
        *,
        incarnation: Incarnation = 0,
        initial: Mapping[Topic, int] | None = None,
        contacts: int = 0,
    ) -> None:
        if not 0 <= node < parameters.size:
            raise LocalProtocolError(f"node {node} is not an id of a cube of {parameters.size}")
        self.node = node
        self._parameters = parameters
        self._validator = Validator(node, parameters)
        self._wishes = Wishes()
        self._retry_set = self._acks_set = self._wishes_set = False
        founding = not incarnation and parameters.founders >> node & 1
        self._process = ProcessMemory(incarnation)
        self._life = self._born(incarnation, parameters.founders if founding else 0)
        if self._life.joining is not None:
            self._life.joining.contacts = contacts
        for topic, members in (initial or {}).items() if founding else ():
            self._life.topic(topic).found(members)
            if members >> node & 1:
                self._wishes.name(topic)

    def _born(self, incarnation: Incarnation, founders: int = 0, version: int = 0) -> Lifetime:
        return Lifetime(self.node, self._parameters, incarnation, founders, self._wishes, version, self._process)

    @property
    def incarnation(self) -> Incarnation:
        return self._life.incarnation

    @property
    def is_active(self) -> bool:
        """Known to everybody who lives, so that it takes part."""
        return self._life.joining is None

    @property
    def living(self) -> list[NodeId]:
        """Whom it lives with, itself included."""
        return list(ids_of(self._life.context.registry.alive))

    # Entry points

    def on_start(self, now: float) -> Effects:
        if self._life.joining is not None:
            self._life.begin_joining(now)
        if self._parameters.detection is Detection.DIAGNOSIS:
            self._life.context.emit(SetTimer(Timer.ROUND, now + self._parameters.round_length))
        return self._finish(now)

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        self._validator.check(sender, packet, self._life.incarnation)
        try:
            self._receive(now, sender, packet)
        except Expelled as end:
            self._reincarnate(now)
            self._life.side_with(end.winner)
        except Dropped:
            self._reincarnate(now)
        return self._finish(now)

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        match timer:
            case Timer.RETRY:
                self._retry()
            case Timer.ROUND:
                self._round(now)
            case Timer.ALONE:
                self._on_alone_timeout(now)
            case Timer.ACKS:
                self._acks_set = False
                self._life.context.ripen_acks()
            case Timer.WISHES:
                self._wishes_set = False
            case _:
                raise LocalProtocolError(f"timer {timer!r} was never set")
        return self._finish(now)

    def handle(self, now: float, given: Input) -> Effects:
        return call_handler(self, now, given)

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        """The driver's failure detector suspects the peer; wrong suspicions cost the peer a restart, nothing else."""
        self._life.suspect(peer)
        return self._finish(now)

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        """A hint that we may talk to somebody again. If one of us does not live with the other, one must give way."""
        context = self._life.context
        if self._life.joining is not None:
            context.send((peer,), Hello(context.by, context.dead))
        else:
            context.send((peer,), Test(context.by, context.dead, True))
        return self._finish(now)

    def on_expelled(self, now: float, newest: Incarnation) -> Effects:
        """The driver learned that incarnations of this id up to `newest` were lived already: come back as the next."""
        if newest >= self.incarnation:
            self._reincarnate(now, newest + 1)
        return self._finish(now)

    def publish(self, now: float, topic: Topic, payloads: Sequence[bytes], hurry: bool = False) -> Effects:
        """`hurry`: somebody waits until this is stable."""
        if not payloads:
            raise LocalProtocolError("a publication needs at least one message")
        self._life.subscribing.consider(topic)
        state = self._life.topic(topic)
        waits = bool(state.queue)
        state.enqueue(payloads)
        state.hurried = state.hurried or hurry
        if waits and not state.has_full_batch:
            return []  # whatever the first in the queue waits for, these wait for as well
        self._life.queued[topic] = None
        if self._life.joining is None and not state.registered:
            state.register()
        return self._finish(now)

    def subscribe(self, now: float, topic: Topic) -> Effects:
        """By name. What the interest matches is subscribed already, and stays so when the interest changes."""
        if self._wishes.is_named(topic):
            raise LocalProtocolError(f"node {self.node} is subscribed to {topic!r} already")
        self._wishes.name(topic)
        self._life.subscribing.consider(topic)
        return self._finish(now)

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        """Of what was subscribed by name; the node stays with what its interest matches."""
        if not self._wishes.is_named(topic):
            raise LocalProtocolError(f"node {self.node} is not subscribed to {topic!r}")
        if self._wishes.unname(topic):
            self._life.subscribing.leave(topic)
        return self._finish(now)

    def follow(self, now: float, interest: Interest | None) -> Effects:
        """Be subscribed to whatever topic the interest matches, known or to come; it replaces the former interest.

        `InterestMatched` announces every topic this concerns, `InterestKnown` that nothing is missed from there on.
        """
        self._wishes.follow(interest)
        self._life.subscribing.review(self._wishes)
        self._life.subscribing.review(self._life.topics)
        self._life.subscribing.go_on()
        if interest is None:
            self._life.inquiry.end()
        elif self._life.joining is None:
            self._life.inquiry.begin()
        return self._finish(now)

    # A step

    def _receive(self, now: float, sender: NodeId, packet: AnyPacket) -> None:
        life = self._life
        if isinstance(packet, Obituary):
            life.on_obituary(sender, packet)
            return
        if life.joining is not None:
            if life.joining.speaks_for_losers(packet):
                self._discard(packet)
                return
            if life.joining.contradicts(sender, packet):
                self._start_over()
                self._life.side_with(life.joining.winner)
                life = self._life
        if life.context.registry.lives.get(sender) != packet.by and not life.admit(sender, packet):
            self._discard(packet)
            return
        life.detector.heard[sender] = now
        if packet.dead:
            for node, incarnation in packet.dead:
                self._life.hold_faulty(Life(node, incarnation))
            if not self._life.context.registry.is_alive(sender, packet.by):
                self._discard(packet)
                return
        if isinstance(packet, Publication):
            self._on_publication(sender, packet)
        else:
            self._dispatch(sender, packet)

    def _dispatch(self, sender: NodeId, packet: AnyPacket) -> None:
        match packet:
            case Publication():
                self._on_publication(sender, packet)
            case Convoy():
                for publication in packet.publications():
                    self._on_publication(sender, publication)
            case Ack():
                self._life.on_ack(sender, packet)
            case Ask():
                self._life.on_ask(sender, packet)
            case Stable():
                source = Life(sender, packet.by)
                self._life.topic(packet.topic).dissemination.settle_stable(source, packet.counter)
            case Wave():
                self._on_wave(sender, packet)
            case WaveAck():
                self._on_wave_ack(sender, packet)
            case Inquiry():
                self._life.on_inquiry(sender, packet)
            case TopicList():
                self._on_topic_list(sender, packet)
            case Hello():
                self._life.on_hello(sender)
            case Welcome():
                if self._life.on_welcome(sender, packet):
                    self._life.become_active()
            case Introduction():
                self._life.on_introduction(sender, packet)
            case Settle():
                self._life.on_settle(sender, packet)
            case SettlePart():
                self._life.on_settle_part(sender, packet)
            case MissingReport():
                self._life.on_missed(sender, packet)
            case MissingReportAck():
                self._process.reports.confirmed(sender, packet.topic, packet.runs)
            case Test():
                if packet.asking:
                    self._life.context.send((sender,), Test(self._life.context.by, self._life.context.dead, False))
            case Obituary():
                pass
            case _:
                assert_never(packet)

    def _finish(self, now: float) -> Effects:
        life = self._life
        if life.settlement.open or life.settlement.must_announce or life.context.opening:
            self._settle(now)
            life = self._life
        context = life.context
        if life.subscribing:
            life.subscribing.go_on()
        if life.inquiry.must_announce:
            self._announce_interest()
        if context.ripe and life.joining is None:
            life.pump()
        if context.busy and not self._retry_set:
            self._retry_set = True
            context.emit(SetTimer(Timer.RETRY, now + life.retry_after))
        context.busy = False
        if life.subscribing.may_go_on and not self._wishes_set:
            self._wishes_set = True
            context.emit(SetTimer(Timer.WISHES, now))
        effects = context.finish()
        if not self._acks_set and context.acks:
            self._acks_set = True
            effects.append(SetTimer(Timer.ACKS, now + self._parameters.ack_delay / 2))
        return effects

    def _settle(self, now: float) -> None:
        life = self._life
        if life.settlement.must_announce:
            life.settlement.announce()
        try:
            if life.settlement.open:
                life.settlement.conclude()
            if life.context.opening:
                life.open_subscriptions()
        except Dropped:
            self._reincarnate(now)

    # Publications

    def _on_publication(self, sender: NodeId, packet: Publication) -> None:
        life = self._life
        topic = life.topics.get(packet.topic) or life.topic(packet.topic)
        destinations = topic.view.learn(packet.members, packet.epochs)
        incarnation, number = destinations.epoch(self.node)
        if incarnation != life.incarnation:
            self._discard(packet)  # for an earlier life of this node: whoever sent it will learn of this one
            return
        publisher, lived, _ = packet.message
        context = life.context
        source = context.registry.known.get(publisher)
        if source is None or source[1] != lived:
            source = Life(publisher, lived)
            life.hold_alive(source)
        for member in packet.epochs:
            life.hold_alive(Life(member.node, member.incarnation))
        delivery, dissemination = topic.delivery, topic.dissemination
        copy = dissemination.receive(sender, source, packet, destinations)
        if packet.stable > dissemination.stable.get(source, 0):
            dissemination.settle_stable(source, packet.stable)
        if delivery is None or delivery.number != number or (context.closed and context.is_closed(source)):
            self._discard(packet)
        elif copy is not None:
            delivery.receive(copy)

    def _discard(self, packet: AnyPacket) -> None:
        if isinstance(packet, Convoy):
            for publication in packet.publications():
                self._discard(publication)
        elif isinstance(packet, Publication):
            for offset in range(len(packet.payloads)):
                message = packet.message._replace(counter=packet.message.counter + offset)
                self._life.context.emit(Observe("discard", packet.topic, message))

    # Membership

    def _on_topic_list(self, sender: NodeId, packet: TopicList) -> None:
        if packet.incarnation == self.incarnation and self._life.inquiry.answered(sender, packet):
            self._life.subscribing.review(packet.topics)

    def _announce_interest(self) -> None:
        """Everybody told its topics, and everybody knows of the subscriptions that brought."""
        life = self._life
        if not life.inquiry and not life.subscribing:
            life.inquiry.must_announce = False
            life.context.emit(InterestKnown())

    def _on_wave(self, sender: NodeId, packet: Wave) -> None:
        """Subscribe first, then answer: whoever asks before it publishes to a new topic learns who wants it."""
        self._life.subscribing.consider(packet.topic)
        topic = self._life.topic(packet.topic)
        if packet.entry is not None and topic.view.merge(packet.entry):
            self._life.context.emit(Observe("view", packet.topic, None, sender))
        topic.continuation.answer(sender, packet)

    def _on_wave_ack(self, sender: NodeId, packet: WaveAck) -> None:
        if packet.incarnation != self.incarnation:
            return
        topic = self._life.topic(packet.topic)
        for entry in packet.entries:
            self._merge(topic, entry)
        topic.wave_answered(sender, packet)

    def _merge(self, topic: TopicState, entry: Entry) -> None:
        if entry.node != self.node:
            self._life.hold_alive(Life(entry.node, entry.incarnation))
            topic.view.merge(entry)

    # Coming and going

    def _start_over(self) -> None:
        """The living contradict each other: forget what they said; they will say it again when they agree.

        Who has been silent is no hearsay: a node that starts over again and again would convict nobody otherwise.
        """
        queues, detector = self._queues(), self._life.detector
        self._life = self._born(self.incarnation, version=self._life.settlement.version)
        self._life.detector = detector
        self._restore(queues)

    def _on_alone_timeout(self, now: float) -> None:
        joining = self._life.joining
        if joining is None:
            return
        joining.is_sure = joining.waited_enough = True
        if joining.is_complete and joining.winner is None:
            self._life.become_active()
        else:
            self._start_over()
            self._life.wait_alone(now)

    def _reincarnate(self, now: float, incarnation: Incarnation | None = None) -> None:
        """This life is over: say so, forget it, and come back."""
        for topic in self._wishes:
            self._life.context.emit(Gap(topic, (), "others hold this node faulty; it subscribes again"))
        self._life.end()
        effects, queues = self._life.context.finish(), self._queues()
        self._life = self._born(self.incarnation + 1 if incarnation is None else incarnation)
        self._life.context.effects = [*effects, Reincarnated(self.incarnation, tuple(self._wishes))]
        self._restore(queues)
        self._retry_set = self._acks_set = self._wishes_set = False
        self._life.begin_joining(now)
        if self._parameters.detection is Detection.DIAGNOSIS:
            self._life.context.emit(SetTimer(Timer.ROUND, now + self._parameters.round_length))

    def _queues(self) -> dict[Topic, deque[bytes]]:
        """What the application asked to publish and has no place in the order yet."""
        return {topic: self._life.topics[topic].queue for topic in self._life.queued}

    def _restore(self, queues: dict[Topic, deque[bytes]]) -> None:
        for topic, queue in queues.items():
            self._life.topic(topic).enqueue(queue)
            self._life.queued[topic] = None

    # Time

    def _retry(self) -> None:
        self._retry_set = False
        life = self._life
        life.repeat_hello()
        life.ask_unmet()
        life.inquiry.ask()
        life.settlement.tick()
        life.tick_topics()
        life.tell_publishers()
        waiting = bool(life.inquiry) or life.settlement.open or bool(life.context.stirring)
        life.context.busy = life.context.busy or waiting

    def _round(self, now: float) -> None:
        life = self._life
        context, joining = life.context, life.joining is not None
        idle = life.idle if life.joining is None else life.joining.silent
        tested, suspects = life.detector.round(now, context.registry.others, idle=idle, joining=joining)
        for peer in suspects:
            life.suspect(peer)
        if not joining:
            context.send(tested, Test(context.by, context.dead, True))
        context.emit(SetTimer(Timer.ROUND, now + self._parameters.round_length))

    # Looking inside

    def envelope_bytes(self, topic: Topic) -> int:
        """Besides its messages, a publication on the topic would take at most so many bytes now."""
        state = self._life.topics.get(topic)
        return 0 if state is None else state.envelope_bytes()

    @property
    def life(self) -> Lifetime:
        """To look at (`inspection`), not to touch; another one after every reincarnation."""
        return self._life

    def last_delivered(self, topic: Topic, source: NodeId, incarnation: Incarnation) -> MessageId:
        """For people and tests: how far the subscription is with a source."""
        delivery = self._life.topic(topic).delivery
        counter = 0 if delivery is None else delivery.last_delivered(Life(source, incarnation))
        return MessageId(source, incarnation, counter)

    def describe(self, now: float, most_topics: int | None = None) -> dict[str, Any]:
        """For people and programs: who lives, and per topic what is under way and held; of so many topics at most."""
        return describe(self._life, now, most_topics)

    def invariants(self) -> None:
        for name, topic in self._life.topics.items():
            topic.invariants()
            assert not topic.busy or name in self._life.context.stirring, f"nobody looks after {name}"
        if not self._life.settlement.open:
            assert not self._life.context.dead, "verdicts are under way although everything is settled"

    def waiting(self) -> list[str]:
        return list(lines_of_waiting(self._life, self._life.topics))
