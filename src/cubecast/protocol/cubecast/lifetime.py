"""One incarnation of a node: who lives as far as it knows, how it became part of them, and what ends with it.

Nothing here survives the incarnation; what does (the application's wishes, and what it asked to publish) belongs to
the machine.
"""

from itertools import islice
from typing import Final

from cubecast.ids import Incarnation, MessageRun, NodeId, Topic
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.interests import OpenInquiry, Subscribing, Wishes, answer
from cubecast.protocol.cubecast.joining import Joining
from cubecast.protocol.cubecast.ledger import ProcessMemory
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
    Wave,
    Welcome,
)
from cubecast.protocol.cubecast.parameters import Parameters, Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.registry import Detector
from cubecast.protocol.cubecast.settlement import Settlement
from cubecast.protocol.cubecast.topics import TopicState
from cubecast.protocol.cubecast.vocabulary import Life, bitmap, mask_from
from cubecast.protocol.effects import Observe, SetTimer, Undelivered
from cubecast.protocol.masks import ids_of

TICKED_AT_ONCE: Final = 500
"""Topics in one step: a client may have subscribed to ten thousand in one go, and a peer does not answer."""


class Expelled(Exception):  # noqa: N818 - not an error: a fact about this node
    """Others hold this incarnation faulty."""

    def __init__(self, winner: Life | None = None) -> None:
        super().__init__()
        self.winner = winner
        """A life of the side it gave way to, if there are sides."""


def _takes_part(packet: AnyPacket) -> bool:
    """Would a joining node not send this? (It answers waves, tests and settlements of others.)"""
    if isinstance(packet, Test | Settle | SettlePart):
        return packet.asking
    return isinstance(packet, Publication | Convoy | Wave | Ack | Ask | Stable | Inquiry | Introduction)


class Lifetime:
    def __init__(
        self,
        node: NodeId,
        parameters: Parameters,
        incarnation: Incarnation,
        founders: int,
        wishes: Wishes,
        version: int = 0,
        process: ProcessMemory | None = None,
    ) -> None:
        self._parameters = parameters
        self.node = node
        self.incarnation = incarnation
        self.context = Context(node, incarnation, parameters, founders, process)
        self.topics: dict[Topic, TopicState] = {}
        self.names: list[Topic] = []
        """Of the topics, in the order in which this life came to know them."""
        self.queued: dict[Topic, None] = {}
        """Topics with something to publish."""
        self.settlement = Settlement(self.context, self.topics, version)
        self.detector = Detector(node, parameters)
        self.joining: Joining | None = None if founders else Joining(self.context)
        self.inquiry = OpenInquiry(self.context)
        self.subscribing = Subscribing(self.context, wishes, self.topic)
        self.subscribing.takes_part = self.joining is None
        self._wishes = wishes
        self._idle = 0
        """Mask of the nodes that were joining when this one began, and did not say yet that they take part."""
        self._heard_of = 0
        """Mask of the nodes this one heard of since it takes part; each says once that it began knowing this one."""

    def topic(self, topic: Topic) -> TopicState:
        state = self.topics.get(topic)
        if state is None:
            state = self.topics[topic] = TopicState(self.context, topic, len(self.names))
            self.names.append(topic)
            state.dissemination.may_push = self.settlement.may_push
            state.continuation.may_come = self.settlement.may_come
        return state

    def pump(self) -> None:
        """Publish what may leave, in the order in which the topics began to wait."""
        ripe, queued = self.context.ripe, self.queued
        for name in list(ripe) if len(ripe) == 1 else [name for name in queued if name in ripe]:
            if name in queued:
                topic = self.topics[name]
                topic.pump()
                if not topic.queue:
                    del queued[name]
        ripe.clear()

    def tick_topics(self) -> None:
        """Time passed for the topics that have something under way; with many of them, for those it is the turn of."""
        stirring = self.context.stirring
        for name in list(islice(stirring, TICKED_AT_ONCE)):
            del stirring[name]
            topic = self.topics[name]
            topic.tick()
            if topic.busy:
                stirring[name] = None

    def end(self) -> None:
        """The process goes on in another one, and keeps what this one knew."""
        for topic in self.topics.values():
            topic.continuation.end()
        self.context.process.is_resumed = True

    def open_subscriptions(self) -> None:
        """Subscriptions that go on from an earlier incarnation hand over what came, when they know what did not."""
        settled = self.settlement.is_agreed
        for name in list(self.context.opening):
            self.topics[name].continuation.open(settled=settled)

    def tell_publishers(self) -> None:
        """What was named as missing, to those who published it and are here."""
        context = self.context
        reports, lives = context.process.reports, context.registry.lives
        if self.joining is None and reports.is_owed(lives):
            for node, topic, runs in list(reports.owed(lives)):
                context.send((node,), MissingReport(context.by, context.dead, topic, runs))
            context.busy = True

    def on_missed(self, sender: NodeId, packet: MissingReport) -> None:
        """A subscriber named these as missing: the application is told, once."""
        context, process = self.context, self.context.process
        for run in packet.runs:
            for first, last in process.reports.news(packet.topic, run) if run.incarnation >= process.first else ():
                missing = MessageRun(self.node, run.incarnation, first, last)
                context.emit(Undelivered(packet.topic, missing, sender))
        context.send((sender,), MissingReportAck(context.by, context.dead, packet.topic, packet.runs))

    @property
    def retry_after(self) -> float:
        """Each topic's turn comes once in the parameter's time, unless they are so many that a step would be long."""
        return self._parameters.retry / max(1, -(-len(self.context.stirring) // TICKED_AT_ONCE))

    # Becoming part

    def admit(self, sender: NodeId, packet: AnyPacket) -> bool:
        """The fence, and introductions: somebody unheard of says hello first, unless we are new ourselves."""
        registry = self.context.registry
        if registry.is_alive(sender, packet.by):
            return True
        if registry.is_dead((sender, packet.by)):
            self.send_obituary(sender, packet.by)
            return False
        if isinstance(packet, Hello) or self.joining is not None:
            self.hold_alive(Life(sender, packet.by))
            return True
        if _takes_part(packet) or self._knows_us(packet):
            self.send_obituary(sender, packet.by, stranger=True)
        return False

    def _knows_us(self, packet: AnyPacket) -> bool:
        """It is the late welcome of somebody who takes part: we began alone because it was late."""
        return isinstance(packet, Welcome) and packet.active and packet.incarnation == self.incarnation

    def begin_joining(self, now: float) -> None:
        self._say_hello(self._parameters.universe & ~(1 << self.node))
        self.wait_alone(now)

    def _say_hello(self, nodes: int) -> None:
        self.context.send_to(nodes, Hello(self.context.by, self.context.dead))

    def wait_alone(self, now: float) -> None:
        """If nobody answers for the patience, there is nobody."""
        self.context.busy = True
        self.context.emit(SetTimer(Timer.ALONE, now + self._parameters.patience))

    def side_with(self, winner: Life | None) -> None:
        """Of two sides that hold each other faulty this node gave way to one: it does not join the other again."""
        if self.joining is not None:
            self.joining.winner = winner

    def repeat_hello(self) -> None:
        if self.joining is not None:
            missing = self._parameters.universe & ~(1 << self.node) & ~self.joining.welcomers
            self._say_hello(missing | self.joining.unacquainted)
            self.joining.asked_again = 0
            self.context.busy = True

    def on_hello(self, sender: NodeId) -> None:
        context = self.context
        incarnation = context.registry.incarnation_of(sender)
        active = self.joining is None
        context.send((sender,), Welcome(context.by, context.dead, incarnation, active, context.registry.standings()))

    def on_welcome(self, sender: NodeId, packet: Welcome) -> bool:
        """True when that was the last one missing."""
        if self.joining is None or packet.incarnation != self.incarnation:
            return False
        if packet.active:
            for node, incarnation, alive in packet.nodes:
                self.hold_alive(Life(node, incarnation))
                if not alive:
                    self.hold_faulty(Life(node, incarnation))
        self.joining.welcomed(sender, packet.active, packet.nodes)
        self._say_hello(self.joining.to_ask_again() & ~(1 << sender))  # it may have met the others since
        return self.joining.is_complete

    def become_active(self) -> None:
        """Known to everybody who lives: take part. Nothing of those who died before was meant for us."""
        assert self.joining is not None
        news = self.joining.news()
        self._heard_of, self._idle = 0, self.joining.idle
        self.joining, self.subscribing.takes_part = None, True
        self._introduce(self.context.registry.others, known=True)
        self.context.closed.update(self.context.registry.faulty())
        for life in news:
            self.settlement.node_died(life)
        self.subscribing.review((*self._wishes, *self.context.process.published()))
        self.subscribing.go_on()
        for topic in self.queued:
            self.topics[topic].register()
        if self._wishes.follows:
            self.inquiry.begin()

    # Those who came later

    @property
    def unmet(self) -> int:
        """Mask of the nodes held correct of which it is not known that they began to take part knowing this one.

        Two that began in different groups may hear of each other by greetings that come late, and then neither would
        ask the other who is subscribed.
        """
        return self._heard_of & self.context.registry.others

    @property
    def idle(self) -> int:
        """Mask of those of whom it is not known that they take part with this node."""
        return self._heard_of | self._idle

    @property
    def companions(self) -> int:
        """Mask of those who take part with this node, itself included, as far as it knows."""
        return self.context.registry.alive & ~self.idle

    def ask_unmet(self) -> None:
        self._introduce(self.unmet, known=False)

    def on_introduction(self, sender: NodeId, packet: Introduction) -> None:
        if self.joining is not None or packet.incarnation != self.incarnation:
            return
        if packet.known:
            self._heard_of &= ~(1 << sender)
            self._idle &= ~(1 << sender)
        elif self.unmet >> sender & 1:  # neither began knowing the other
            self.send_obituary(sender, packet.by, stranger=True)
        else:
            self._introduce(1 << sender, known=True)

    def _introduce(self, nodes: int, *, known: bool) -> None:
        context = self.context
        for node in ids_of(nodes):
            incarnation = context.registry.incarnation_of(node)
            context.send((node,), Introduction(context.by, context.dead, incarnation, known))
            context.busy = context.busy or not known

    # Verdicts

    def hold_alive(self, life: Life) -> None:
        if self.context.registry.is_alive(*life):
            return
        old = self.context.registry.faulty_up_to(life.node)
        if life.node != self.node and self.context.registry.hold_alive(*life):
            if life.incarnation - 1 > old:
                self._after_death(Life(life.node, life.incarnation - 1))
            if self.joining is None:
                self._heard_of |= 1 << life.node
                self.context.busy = True
            for topic in self.topics.values():
                topic.view.forget_cache()

    def hold_faulty(self, life: Life) -> None:
        if life.node == self.node:
            if life.incarnation >= self.incarnation:
                raise Expelled
        elif self.context.registry.hold_faulty(*life):
            self._after_death(life)
            self.context.emit(Observe("suspect", peer=life.node))

    def _after_death(self, life: Life) -> None:
        if self.joining is not None:
            return
        self.context.deaths += 1
        self.settlement.node_died(life)
        self.inquiry.peer_died(life.node)
        for topic in self.topics.values():
            topic.peer_died(life)

    def suspect(self, peer: NodeId) -> None:
        if self.joining is not None and self.joining.winner is not None and self.joining.winner.node == peer:
            self.joining.winner = None
        incarnation = self.context.registry.incarnation_of(peer)
        if peer != self.node and self.context.registry.is_alive(peer, incarnation):
            self.hold_faulty(Life(peer, incarnation))
            self.send_obituary(peer, incarnation)

    def send_obituary(self, peer: NodeId, incarnation: Incarnation, *, stranger: bool = False) -> None:
        context = self.context
        context.send((peer,), Obituary(context.by, (), incarnation, bitmap(self.companions), stranger))

    def on_obituary(self, sender: NodeId, packet: Obituary) -> None:
        """Somebody we live with is right about us. Between strangers, those who live with fewer nodes give way.

        Somebody we took for one of us and who never heard of us is a stranger too: it began alone. So is one who said
        hello and never that it began with us: it may have begun with others.
        """
        registry = self.context.registry
        if packet.incarnation != self.incarnation or packet.by < registry.incarnation_of(sender):
            return
        # Neither counts the other, who may live with it by now in its own eyes: so both compare the same two sets.
        theirs, ours = mask_from(packet.alive) & ~(1 << self.node), self.companions & ~(1 << sender)
        friend = registry.is_alive(sender, packet.by)
        met = friend and not packet.stranger and not self.unmet >> sender & 1
        if met:
            raise Expelled
        if (theirs.bit_count(), -packet.by, theirs) > (ours.bit_count(), -self.incarnation, ours):
            raise Expelled(Life(sender, packet.by))
        if friend:
            self.suspect(sender)

    def on_settle_part(self, sender: NodeId, packet: SettlePart) -> None:
        whole = self.settlement.pieces.add(sender, packet)
        if whole is not None:
            self.on_settle(sender, whole)

    def on_settle(self, sender: NodeId, packet: Settle) -> None:
        if self.joining is not None:
            if packet.asking:
                self.joining.agree(packet.faulty)
                self.settlement.echo(sender, packet)
            return
        for life in packet.faulty:
            self.hold_faulty(life)
        self.settlement.receive(sender, packet)
        if packet.asking:
            self.settlement.answer(sender)

    # What concerns single topics

    def on_ack(self, sender: NodeId, packet: Ack) -> None:
        topic = self.topic(packet.topic)
        acknowledged, own = topic.dissemination.acknowledged, False
        for message in packet.messages:
            acknowledged(sender, message)
            own = own or message[0] == self.node
        if own:
            topic.check_stable()

    def on_inquiry(self, sender: NodeId, packet: Inquiry) -> None:
        last = self.topics.get(packet.after)
        self.context.send((sender,), answer(self.context, packet, self.names, 0 if last is None else last.place + 1))

    def on_ask(self, sender: NodeId, packet: Ask) -> None:
        topic = self.topic(packet.topic)
        if packet.incarnation == self.incarnation and packet.counter <= topic.stable:
            context = self.context
            context.send((sender,), Stable(context.by, context.dead, packet.topic, topic.stable))
