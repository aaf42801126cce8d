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
from enum import Enum
from typing import Any, assert_never

from cubecast.errors import LocalProtocolError
from cubecast.ids import Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.contract import Effects, Gap, Observe, Reincarnated, SetTimer, Unsubscribed
from cubecast.protocol.vcube.cubecast.context import Context
from cubecast.protocol.vcube.cubecast.delivery import Dropped
from cubecast.protocol.vcube.cubecast.detector import Detector
from cubecast.protocol.vcube.cubecast.joining import Joining
from cubecast.protocol.vcube.cubecast.packets import (
    Ack,
    AnyPacket,
    Ask,
    Entry,
    Hello,
    Life,
    Obituary,
    Publication,
    Settle,
    Stable,
    Test,
    Wave,
    WaveAck,
    Welcome,
    bitmap,
    mask_from,
)
from cubecast.protocol.vcube.cubecast.parameters import Detection, Parameters
from cubecast.protocol.vcube.cubecast.settlement import Settlement
from cubecast.protocol.vcube.cubecast.topics import TopicState
from cubecast.protocol.vcube.cubecast.validation import Validator


class Timer(Enum):
    RETRY = "retry"
    ROUND = "round"
    ALONE = "alone"


class Expelled(Exception):  # noqa: N818 - not an error: a fact about this node
    """Others hold this incarnation faulty."""


def _takes_part(packet: AnyPacket) -> bool:
    """Would a joining node not send this? (It answers waves, tests and settlements of others.)"""
    if isinstance(packet, Test | Settle):
        return packet.asking
    return isinstance(packet, Publication | Wave | Ack | Ask | Stable)


class Cubecast:
    """One node. `initial` names, per topic, the nodes (a mask) that subscribed before the start of incarnation 0."""

    def __init__(
        self,
        node: NodeId,
        parameters: Parameters,
        *,
        incarnation: Incarnation = 0,
        initial: Mapping[Topic, int] | None = None,
    ) -> None:
        if not 0 <= node < parameters.size:
            raise LocalProtocolError(f"node {node} is not an id of a cube of {parameters.size}")
        self.node = node
        self._parameters = parameters
        self._validator = Validator(node, parameters)
        self._wanted: dict[Topic, None] = {}
        self._retry_set = False
        founding = not incarnation and parameters.founders >> node & 1
        self._live(incarnation, parameters.founders if founding else 0)
        self._joining: Joining | None = None if founding else Joining(self._context)
        for topic, members in (initial or {}).items() if founding else ():
            self._topic(topic).found(members)
            if members >> node & 1:
                self._wanted[topic] = None

    def _live(self, incarnation: Incarnation, founders: int, version: int = 0) -> None:
        """A new life: nothing is remembered but the application's wishes."""
        self._context = Context(self.node, incarnation, self._parameters, founders)
        self._topics: dict[Topic, TopicState] = {}
        self._queued: dict[Topic, None] = {}
        self._settlement = Settlement(self._context, self._topics, version)
        self._detector = Detector(self.node, self._parameters)

    @property
    def incarnation(self) -> Incarnation:
        return self._context.by

    # Entry points

    def on_start(self, now: float) -> Effects:
        if self._joining is not None:
            self._begin_joining(now)
        if self._parameters.detection is Detection.DIAGNOSIS:
            self._context.emit(SetTimer(Timer.ROUND, now + self._parameters.round_length))
        return self._finish(now)

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        self._validator.check(sender, packet, self.incarnation)
        try:
            self._receive(now, sender, packet)
        except (Expelled, Dropped):
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
            case _:
                raise LocalProtocolError(f"timer {timer!r} was never set")
        return self._finish(now)

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        """The driver's failure detector suspects the peer; wrong suspicions cost the peer a restart, nothing else."""
        self._suspect(peer)
        return self._finish(now)

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        """A hint that we may talk to somebody again whom we do not live with: if it lives, one of us must give way."""
        context = self._context
        if self._joining is not None:
            context.send((peer,), Hello(context.by, context.dead))
        elif not context.registry.alive >> peer & 1:
            context.send((peer,), Test(context.by, context.dead, True))
        return self._finish(now)

    def publish(self, now: float, topic: Topic, payloads: Sequence[bytes]) -> Effects:
        if not payloads:
            raise LocalProtocolError("a publication needs at least one message")
        state = self._topic(topic)
        state.queue.extend(payloads)
        self._queued[topic] = None
        if self._joining is None:
            state.register()
        return self._finish(now)

    def subscribe(self, now: float, topic: Topic) -> Effects:
        if topic in self._wanted:
            raise LocalProtocolError(f"node {self.node} is subscribed to {topic!r} already")
        self._wanted[topic] = None
        if self._joining is None:
            self._topic(topic).subscribe()
        return self._finish(now)

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        if topic not in self._wanted:
            raise LocalProtocolError(f"node {self.node} is not subscribed to {topic!r}")
        del self._wanted[topic]
        self._context.emit(Unsubscribed(topic))
        if self._joining is None:
            self._topic(topic).unsubscribe()
        return self._finish(now)

    # A step

    def _receive(self, now: float, sender: NodeId, packet: AnyPacket) -> None:
        if isinstance(packet, Obituary):
            self._on_obituary(sender, packet)
            return
        if self._joining is not None and self._joining.contradicts(sender, packet):
            self._start_over()
        if not self._admit(sender, packet):
            self._discard(packet)
            return
        self._detector.heard(now, sender)
        for node, incarnation in packet.dead:
            self._hold_faulty(Life(node, incarnation))
        if not self._context.registry.is_alive(sender, packet.by):
            self._discard(packet)
            return
        self._dispatch(sender, packet)

    def _admit(self, sender: NodeId, packet: AnyPacket) -> bool:
        """The fence, and introductions: somebody unheard of says hello first, unless we are new ourselves."""
        registry = self._context.registry
        if registry.is_alive(sender, packet.by):
            return True
        if registry.is_dead((sender, packet.by)):
            self._send_obituary(sender, packet.by)
            return False
        if isinstance(packet, Hello) or self._joining is not None:
            self._hold_alive(Life(sender, packet.by))
            return True
        if _takes_part(packet):
            self._send_obituary(sender, packet.by)
        return False

    def _dispatch(self, sender: NodeId, packet: AnyPacket) -> None:
        match packet:
            case Publication():
                self._on_publication(sender, packet)
            case Ack():
                self._on_ack(sender, packet)
            case Ask():
                self._on_ask(sender, packet)
            case Stable():
                source = Life(sender, packet.by)
                self._topic(packet.topic).dissemination.settle_stable(source, packet.counter)
            case Wave():
                self._on_wave(sender, packet)
            case WaveAck():
                self._on_wave_ack(sender, packet)
            case Hello():
                self._on_hello(sender)
            case Welcome():
                self._on_welcome(sender, packet)
            case Settle():
                self._on_settle(sender, packet)
            case Test():
                if packet.asking:
                    self._context.send((sender,), Test(self._context.by, self._context.dead, False))
            case Obituary():
                pass
            case _:
                assert_never(packet)

    def _finish(self, now: float) -> Effects:
        if self._settlement.must_announce:
            self._settlement.announce()
        try:
            self._settlement.conclude()
        except Dropped:
            self._reincarnate(now)
        if self._queued and self._joining is None:
            for name in list(self._queued):
                self._topics[name].pump()
                if not self._topics[name].queue:
                    del self._queued[name]
        if self._context.busy and not self._retry_set:
            self._retry_set = True
            self._context.emit(SetTimer(Timer.RETRY, now + self._parameters.retry))
        self._context.busy = False
        return self._context.finish()

    # Publications

    def _on_publication(self, sender: NodeId, packet: Publication) -> None:
        topic = self._topic(packet.topic)
        destinations = topic.view.learn(packet.members, packet.epochs)
        incarnation, number = destinations.epoch(self.node)
        if incarnation != self.incarnation:
            self._discard(packet)  # for an earlier life of this node: whoever sent it will learn of this one
            return
        source = Life(packet.message.source, packet.message.incarnation)
        self._hold_alive(source)
        for member in packet.epochs:
            self._hold_alive(Life(member.node, member.incarnation))
        delivery = topic.delivery
        copy = topic.dissemination.receive(sender, packet, destinations)
        topic.dissemination.settle_stable(source, packet.stable)
        if delivery is None or delivery.number != number or self._context.is_closed(source):
            self._discard(packet)
        elif copy is not None:
            delivery.receive(copy)

    def _discard(self, packet: AnyPacket) -> None:
        if isinstance(packet, Publication):
            for offset in range(len(packet.payloads)):
                message = packet.message._replace(counter=packet.message.counter + offset)
                self._context.emit(Observe("discard", packet.topic, message))

    def _on_ack(self, sender: NodeId, packet: Ack) -> None:
        topic = self._topic(packet.topic)
        for message in packet.messages:
            topic.dissemination.acknowledged(sender, message)
        topic.check_stable()

    def _on_ask(self, sender: NodeId, packet: Ask) -> None:
        topic = self._topic(packet.topic)
        if packet.incarnation == self.incarnation and packet.counter <= topic.stable:
            self._context.send((sender,), Stable(self.incarnation, self._context.dead, packet.topic, topic.stable))

    # Membership

    def _on_wave(self, sender: NodeId, packet: Wave) -> None:
        topic = self._topic(packet.topic)
        if packet.entry is not None and topic.view.merge(packet.entry):
            self._context.emit(Observe("view", packet.topic, None, sender))
        context = self._context
        answer = WaveAck(context.by, context.dead, packet.topic, packet.by, packet.number, topic.view.entries())
        context.send((sender,), answer)

    def _on_wave_ack(self, sender: NodeId, packet: WaveAck) -> None:
        if packet.incarnation != self.incarnation:
            return
        topic = self._topic(packet.topic)
        for entry in packet.entries:
            self._merge(topic, entry)
        topic.wave_answered(sender, packet.number)

    def _merge(self, topic: TopicState, entry: Entry) -> None:
        if entry.node != self.node:
            self._hold_alive(Life(entry.node, entry.incarnation))
            topic.view.merge(entry)

    # Coming and going

    def _begin_joining(self, now: float) -> None:
        context = self._context
        context.busy = True
        context.send_to(self._parameters.universe & ~(1 << self.node), Hello(context.by, context.dead))
        context.emit(SetTimer(Timer.ALONE, now + self._parameters.patience))

    def _start_over(self) -> None:
        """The living contradict each other: forget what they said; they will say it again when they agree."""
        queues = self._queues()
        self._live(self.incarnation, 0, self._settlement.version)
        self._restore(queues)

    def _on_alone_timeout(self, now: float) -> None:
        if self._joining is None:
            return
        self._joining.is_sure = True
        if self._joining.is_complete:
            self._become_active()
        else:
            self._start_over()
            self._context.busy = True
            self._context.emit(SetTimer(Timer.ALONE, now + self._parameters.patience))

    def _on_hello(self, sender: NodeId) -> None:
        context = self._context
        incarnation = context.registry.incarnation_of(sender)
        active = self._joining is None
        context.send((sender,), Welcome(context.by, context.dead, incarnation, active, context.registry.standings()))

    def _on_welcome(self, sender: NodeId, packet: Welcome) -> None:
        if self._joining is None or packet.incarnation != self.incarnation:
            return
        if packet.active:
            for node, incarnation, alive in packet.nodes:
                self._hold_alive(Life(node, incarnation))
                if not alive:
                    self._hold_faulty(Life(node, incarnation))
        self._joining.welcomed(sender, packet.active, packet.nodes)
        if self._joining.is_complete:
            self._become_active()

    def _become_active(self) -> None:
        """Known to everybody who lives: take part. Nothing of those who died before was meant for us."""
        assert self._joining is not None
        news = self._joining.news()
        self._joining = None
        self._context.closed.update(self._context.registry.faulty())
        for life in news:
            self._settlement.node_died(life)
        for topic in self._wanted:
            self._topic(topic).subscribe()
        for topic in self._queued:
            self._topics[topic].register()

    def _reincarnate(self, now: float) -> None:
        """This life is over: say so, forget it, and come back."""
        for topic in self._wanted:
            self._context.emit(Gap(topic, (), "others hold this node faulty; it subscribes again"))
        effects, queues = self._context.finish(), self._queues()
        self._live(self.incarnation + 1, 0)
        self._context.effects = [*effects, Reincarnated(self.incarnation, tuple(self._wanted))]
        self._restore(queues)
        self._retry_set = False
        self._begin_joining(now)
        if self._parameters.detection is Detection.DIAGNOSIS:
            self._context.emit(SetTimer(Timer.ROUND, now + self._parameters.round_length))

    def _queues(self) -> dict[Topic, deque[bytes]]:
        """What the application asked to publish and has no place in the order yet."""
        return {topic: self._topics[topic].queue for topic in self._queued}

    def _restore(self, queues: dict[Topic, deque[bytes]]) -> None:
        self._joining = Joining(self._context)
        for topic, queue in queues.items():
            self._topic(topic).queue = queue
            self._queued[topic] = None

    # Verdicts

    def _hold_alive(self, life: Life) -> None:
        old = self._context.registry.faulty_up_to(life.node)
        if life.node != self.node and self._context.registry.hold_alive(*life):
            if life.incarnation - 1 > old:
                self._after_death(Life(life.node, life.incarnation - 1))
            for topic in self._topics.values():
                topic.view.forget_cache()

    def _hold_faulty(self, life: Life) -> None:
        if life.node == self.node:
            if life.incarnation >= self.incarnation:
                raise Expelled
        elif self._context.registry.hold_faulty(*life):
            self._after_death(life)
            self._context.emit(Observe("suspect", peer=life.node))

    def _after_death(self, life: Life) -> None:
        if self._joining is not None:
            return
        self._settlement.node_died(life)
        for topic in self._topics.values():
            topic.peer_died(life.node)

    def _suspect(self, peer: NodeId) -> None:
        incarnation = self._context.registry.incarnation_of(peer)
        if peer != self.node and self._context.registry.is_alive(peer, incarnation):
            self._hold_faulty(Life(peer, incarnation))
            self._send_obituary(peer, incarnation)

    def _send_obituary(self, peer: NodeId, incarnation: Incarnation) -> None:
        context = self._context
        context.send((peer,), Obituary(context.by, (), incarnation, bitmap(context.registry.alive)))

    def _on_obituary(self, sender: NodeId, packet: Obituary) -> None:
        """Somebody we live with is right about us. Between strangers, those who live with fewer nodes give way."""
        registry = self._context.registry
        if packet.incarnation != self.incarnation or packet.by < registry.incarnation_of(sender):
            return
        theirs, ours = mask_from(packet.alive), registry.alive
        if registry.is_alive(sender, packet.by) or (theirs.bit_count(), theirs) > (ours.bit_count(), ours):
            raise Expelled

    def _on_settle(self, sender: NodeId, packet: Settle) -> None:
        if self._joining is not None:
            if packet.asking:
                self._joining.agree(packet.faulty)
                self._settlement.echo(sender, packet)
            return
        for life in packet.faulty:
            self._hold_faulty(life)
        self._settlement.receive(sender, packet)
        if packet.asking:
            self._settlement.answer(sender)

    # Time

    def _retry(self) -> None:
        self._retry_set = False
        context = self._context
        if self._joining is not None:
            missing = self._parameters.universe & ~(1 << self.node) & ~self._joining.welcomers
            context.send_to(missing, Hello(context.by, context.dead))
            context.busy = True
        self._settlement.tick()
        for topic in self._topics.values():
            topic.tick()
        context.busy = context.busy or self._settlement.open or any(topic.busy for topic in self._topics.values())

    def _round(self, now: float) -> None:
        context = self._context
        tested, suspects = self._detector.round(now, context.registry.others)
        for peer in suspects:
            self._suspect(peer)
        if self._joining is None:
            context.send(tested, Test(context.by, context.dead, True))
        context.emit(SetTimer(Timer.ROUND, now + self._parameters.round_length))

    # Looking inside

    def _topic(self, topic: Topic) -> TopicState:
        state = self._topics.get(topic)
        if state is None:
            state = self._topics[topic] = TopicState(self._context, topic)
            state.dissemination.may_push = self._settlement.may_push
        return state

    def last_delivered(self, topic: Topic, source: NodeId, incarnation: Incarnation) -> MessageId:
        """For people and tests: how far the subscription is with a source."""
        delivery = self._topic(topic).delivery
        counter = 0 if delivery is None else delivery.last_delivered(Life(source, incarnation))
        return MessageId(source, incarnation, counter)

    def invariants(self) -> None:
        for topic in self._topics.values():
            topic.invariants()
        if not self._settlement.open:
            assert not self._context.dead, "verdicts are under way although everything is settled"

    def waiting(self) -> list[str]:
        lines = [] if self._joining is None else [f"joining: waits for nodes {self._joining.missing}"]
        lines += self._settlement.waiting()
        return lines + [line for topic in self._topics.values() for line in topic.waiting()]
