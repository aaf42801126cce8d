"""Clean traces from a model that knows no protocol: an all-seeing world that simply does everything right.

A subscription is activated at one instant of the world; what is published later, anywhere, addresses it, what was
published earlier is its starting cut. So every cut is causally closed and honest by construction. A message is
delivered when all its causes are: delivered, in the cut, or lost with a crashed publisher and announced as a gap.
"""

import random
from dataclasses import dataclass, field
from zlib import crc32

from cubecast.ids import MessageId
from cubecast.trace.event import Event, Inside, RunInfo
from cubecast.trace.reader import Trace
from cubecast.trace.schema import PROPERTIES, WELL_FORMED, Kind

ORDERED = ("P9a", "P9b", "P9c")
ALL_PROMISES = (*WELL_FORMED, *PROPERTIES)
CAUSAL_PROMISES = tuple(name for name in ALL_PROMISES if name not in ORDERED)


def inside(batch: list[MessageId]) -> tuple[Inside, ...]:
    return tuple(Inside(*message) for message in batch)


@dataclass(eq=False)
class ModelSubscription:
    node: "ModelNode"
    topic: str
    active: bool = False
    confirmed: bool = False
    leaving: bool = False
    states_cuts: str = "at delivery"
    cut: dict[tuple[int, int], int] = field(default_factory=dict)
    stated: set[tuple[int, int]] = field(default_factory=set)
    travelling: dict[MessageId, int] = field(default_factory=dict)
    held: set[MessageId] = field(default_factory=set)
    delivered: set[MessageId] = field(default_factory=set)
    announced: set[MessageId] = field(default_factory=set)

    def excludes(self, message: MessageId) -> bool:
        return message.counter <= self.cut.get(message[:2], 0)


@dataclass(eq=False)
class ModelNode:
    name: int
    incarnation: int = 0
    up: bool = True
    rows: int = 0
    subscriptions: dict[str, ModelSubscription] = field(default_factory=dict)
    known: dict[str, set[MessageId]] = field(default_factory=dict)
    muted: set[str] = field(default_factory=set)
    """Topics on which a failed publication was its last."""


@dataclass(eq=False)
class ModelMessage:
    causes: frozenset[MessageId]
    place: int
    addressed: list[ModelSubscription]
    packet: int
    lost: bool = False
    failed: bool = False
    acknowledged: bool = False


class ModelWorld:
    def __init__(self, seed: int, total_order: bool = False, nodes: int | None = None, steps: int | None = None):
        self.random = random.Random(seed)
        self.total_order = total_order
        self.steps = self.random.randint(20, 250) if steps is None else steps
        self.nodes = [ModelNode(name) for name in range(self.random.randint(2, 10) if nodes is None else nodes)]
        self.topics = ["a", "b", "c"][: self.random.randint(1, 3)]
        self.messages: dict[str, dict[MessageId, ModelMessage]] = {topic: {} for topic in self.topics}
        self.counters: dict[tuple[str, int, int], int] = {}
        self.left_behind: list[tuple[ModelNode, int, str, MessageId]] = []
        self.packets = 0
        self.quiescing = False
        self.events: list[Event] = []

    def run(self) -> list[Event]:
        for node in self.nodes:
            self.log(node, Kind.START)
            for topic in self.topics:
                if self.random.random() < 0.6:
                    self.subscribe(node, topic)
        actions = [self.publish, self.step_subscriptions, self.arrive, self.arrive, self.deliver, self.deliver]
        rare = [self.acknowledge, self.acknowledge, self.churn, self.churn, self.churn, self.duplicate, self.relay]
        rare += [self.crash_or_stop, self.restart, self.fail, self.orphan]
        for _ in range(self.steps):
            self.random.choice(actions if self.random.random() < 0.8 else rare)()
        self.quiesce()
        return self.events

    # what the application and the environment do

    def publish(self) -> None:
        node = self.random.choice(self.nodes)
        topic = self.random.choice(self.topics)
        if node.up and topic not in node.muted:
            self.publish_batch(node, topic, self.random.choice((1, 1, 1, 2)))

    def publish_batch(self, node: ModelNode, topic: str, count: int) -> list[MessageId]:
        addressed = [s for other in self.nodes for t, s in other.subscriptions.items() if t == topic and s.active]
        self.packets += 1
        batch = []
        for _ in range(count):
            key = (topic, node.name, node.incarnation)
            self.counters[key] = self.counters.get(key, 0) + 1
            message = MessageId(node.name, node.incarnation, self.counters[key])
            causes = frozenset(node.known.setdefault(topic, set()))
            known = self.messages[topic]
            known[message] = ModelMessage(causes, len(known), addressed, self.packets)
            node.known[topic].add(message)
            self.log(node, Kind.PUBLISH, topic, message, deps=self.claim(topic, causes))
            batch.append(message)
        for subscription in addressed:
            other = subscription.node
            if other is not node:
                self.log(node, Kind.SEND, topic, batch[0], peer=other.name, packet=self.packets, messages=inside(batch))
            subscription.travelling[batch[0]] = count
        return batch

    def claim(self, topic: str, causes: frozenset[MessageId]) -> tuple[MessageId, ...]:
        """The direct dependencies, sometimes with a needless but true one."""
        direct = {m for m in causes if not any(m in self.messages[topic][other].causes for other in causes)}
        if causes and self.random.random() < 0.2:
            direct.add(self.random.choice(sorted(causes)))
        return tuple(sorted(direct))

    def churn(self) -> None:
        node, topic = self.random.choice(self.nodes), self.random.choice(self.topics)
        if not node.up:
            return
        subscription = node.subscriptions.get(topic)
        if subscription is None:
            self.subscribe(node, topic)
        elif not subscription.leaving:
            subscription.leaving = True
            self.log(node, Kind.UNSUBSCRIBE, topic)
        else:
            self.log(node, Kind.UNSUBSCRIBED, topic)
            self.close(node, topic)

    def subscribe(self, node: ModelNode, topic: str) -> None:
        style = self.random.choice(("at delivery", "at delivery", "at confirmation", "never if zero"))
        node.subscriptions[topic] = ModelSubscription(node, topic, states_cuts=style)
        self.log(node, Kind.SUBSCRIBE, topic)

    def close(self, node: ModelNode, topic: str) -> None:
        gone = node.subscriptions.pop(topic)
        gone.active = False
        waiting = [*gone.travelling, *gone.held]
        self.left_behind += [(node, node.incarnation, topic, message) for message in sorted(waiting)]

    def crash_or_stop(self) -> None:
        node = self.random.choice(self.nodes)
        if node.up and sum(other.up for other in self.nodes) >= 2:
            self.end(node, crash=self.random.random() < 0.7)

    def orphan(self) -> None:
        """A node publishes twice and crashes; only the second publication got away."""
        node, topic = self.random.choice(self.nodes), self.random.choice(self.topics)
        others = [s for n in self.nodes if n is not node for t, s in n.subscriptions.items() if t == topic and s.active]
        if node.up and others and topic not in node.muted:
            self.publish_batch(node, topic, 1)
            (second,) = self.publish_batch(node, topic, 1)
            self.arrive_one(self.random.choice(others), second)
            self.end(node, crash=True)

    def end(self, node: ModelNode, crash: bool) -> None:
        for topic in list(node.subscriptions):
            self.close(node, topic)
        if crash:
            self.lose(node)
        self.log(node, Kind.CRASH if crash else Kind.STOP)
        node.up = False

    def lose(self, node: ModelNode) -> None:
        """Some packets of the crashed that reached nobody are gone."""
        for messages in self.messages.values():
            for packet in sorted({messages[m].packet for m in messages if m[:2] == (node.name, node.incarnation)}):
                ids = [m for m, message in messages.items() if message.packet == packet]
                active = [s for s in messages[ids[0]].addressed if s.active]
                untouched = all(ids[0] in s.travelling for s in messages[ids[0]].addressed)
                if untouched and not messages[ids[0]].acknowledged and self.random.random() < 0.8:
                    for subscription in active:
                        del subscription.travelling[ids[0]]
                    for m in ids:
                        messages[m].lost = True

    def restart(self) -> None:
        down = [node for node in self.nodes if not node.up]
        if down:
            old = self.random.choice(down)
            node = ModelNode(old.name, old.incarnation + 1)
            self.nodes[self.nodes.index(old)] = node
            self.log(node, Kind.START)

    def fail(self) -> None:
        """A publication that reaches nobody, the publisher's last on that topic."""
        node, topic = self.random.choice(self.nodes), self.random.choice(self.topics)
        if node.up and topic not in node.muted:
            (message,) = self.publish_batch(node, topic, 1)
            for subscription in self.messages[topic][message].addressed:
                subscription.travelling.pop(message, None)
            self.messages[topic][message].failed = True
            node.muted.add(topic)
            self.log(node, Kind.FAILED, topic, message)

    # what a perfect system does about it

    def step_subscriptions(self) -> None:
        subscription = self.any_subscription()
        if subscription is None:
            return
        node, topic = subscription.node, subscription.topic
        if not subscription.active:
            subscription.active = True
            subscription.cut = {(s, i): c for (t, s, i), c in self.counters.items() if t == topic}
        elif not subscription.confirmed:
            subscription.confirmed = True
            cut = None
            if subscription.states_cuts == "at confirmation" and not subscription.delivered:
                cut = tuple(MessageId(*p, c) for p, c in sorted(subscription.cut.items()))
                subscription.stated = set(subscription.cut)
            self.log(node, Kind.SUBSCRIBED, topic, cut=cut)

    def arrive(self) -> None:
        subscription = self.any_subscription()
        if subscription is None or not subscription.travelling:
            return
        self.arrive_one(subscription, self.random.choice(sorted(subscription.travelling)))

    def arrive_one(self, subscription: ModelSubscription, first: MessageId) -> None:
        count = subscription.travelling.pop(first)
        batch = [first._replace(counter=first.counter + i) for i in range(count)]
        subscription.held.update(batch)
        node = subscription.node
        if first.source != node.name:
            packet = self.messages[subscription.topic][first].packet
            self.log(
                node, Kind.RECEIVE, subscription.topic, first, peer=first.source, packet=packet, messages=inside(batch)
            )

    def deliver(self) -> None:
        subscription = self.any_subscription()
        if subscription is not None:
            ready = [message for message in sorted(subscription.held) if self.deliverable(subscription, message)]
            if ready:
                self.deliver_one(subscription, self.random.choice(ready))
                self.react(subscription)

    def react(self, subscription: ModelSubscription) -> None:
        node, topic = subscription.node, subscription.topic
        if self.random.random() < 0.3 and not self.quiescing and topic not in node.muted:
            self.publish_batch(node, topic, 1)

    def deliverable(self, subscription: ModelSubscription, message: MessageId) -> bool:
        messages = self.messages[subscription.topic]
        if self.total_order:
            place = messages[message].place
            waiting = {*subscription.held} | {
                first._replace(counter=first.counter + i)
                for first, count in subscription.travelling.items()
                for i in range(count)
            }
            return all(messages[other].place >= place for other in waiting)
        return all(
            cause in subscription.delivered or subscription.excludes(cause) or messages[cause].lost
            for cause in messages[message].causes
        )

    def deliver_one(self, subscription: ModelSubscription, message: MessageId) -> None:
        node, topic, publisher = subscription.node, subscription.topic, message[:2]
        messages = self.messages[topic]
        for cause in sorted(messages[message].causes):
            unannounced = cause not in subscription.announced and not subscription.excludes(cause)
            if messages[cause].lost and unannounced:
                subscription.announced.add(cause)
                self.log(node, Kind.GAP, topic, cause)
        if publisher not in subscription.stated:
            subscription.stated.add(publisher)
            cut = MessageId(*publisher, subscription.cut.get(publisher, 0))
            if cut.counter or subscription.states_cuts == "at delivery":
                self.log(node, Kind.CUT, topic, cut=(cut,))
        subscription.held.discard(message)
        subscription.delivered.add(message)
        node.known.setdefault(topic, set()).update({message} | messages[message].causes)
        self.log(node, Kind.DELIVER, topic, message)

    def acknowledge(self) -> None:
        topic = self.random.choice(self.topics)
        for message, state in self.messages[topic].items():
            if not (state.acknowledged or state.lost or state.failed) and self.random.random() < 0.5:
                self.acknowledge_one(topic, message, state)

    def acknowledge_one(self, topic: str, message: MessageId, state: ModelMessage) -> None:
        publisher = self.nodes[message.source]
        reached = all(message in s.delivered or not s.active for s in state.addressed)
        if publisher.up and publisher.incarnation == message.incarnation and reached:
            state.acknowledged = True
            self.log(publisher, Kind.ACKNOWLEDGED, topic, message)

    def duplicate(self) -> None:
        """A packet arrives twice, or too late for the subscription it was for."""
        subscription = self.any_subscription()
        if subscription is not None and subscription.delivered:
            message = self.random.choice(sorted(subscription.delivered))
            self.log(subscription.node, Kind.RECEIVE, subscription.topic, message, peer=0, messages=inside([message]))
        if self.left_behind:
            node, incarnation, topic, message = self.left_behind.pop()
            if node.up and node.incarnation == incarnation:
                self.log(node, Kind.RECEIVE, topic, message, peer=message.source, messages=inside([message]))
                self.log(node, Kind.DISCARD, topic, message)

    def relay(self) -> None:
        topic = self.random.choice(self.topics)
        idle = [node for node in self.nodes if node.up and topic not in node.subscriptions]
        if idle and self.messages[topic]:
            message = self.random.choice(sorted(self.messages[topic]))
            self.log(
                self.random.choice(idle), Kind.RECEIVE, topic, message, peer=message.source, messages=inside([message])
            )

    def any_subscription(self) -> ModelSubscription | None:
        present = [s for node in self.nodes for s in node.subscriptions.values()]
        return self.random.choice(present) if present else None

    def quiesce(self) -> None:
        self.quiescing = True
        while any(s.held or s.travelling for node in self.nodes for s in node.subscriptions.values()):
            self.arrive()
            self.deliver()
        for topic, messages in self.messages.items():
            for message, state in messages.items():
                if not (state.acknowledged or state.lost or state.failed) and self.random.random() < 0.9:
                    self.acknowledge_one(topic, message, state)
        for node in self.nodes:
            if node.up:
                self.log(node, Kind.QUIESCENT)

    def log(
        self,
        node: ModelNode,
        kind: Kind,
        topic: str | None = None,
        message: MessageId | None = None,
        **rest: object,
    ) -> None:
        source, incarnation, counter = message if message is not None else (None, None, None)
        place, node.rows = node.rows, node.rows + 1
        clock = float(len(self.events))
        event = Event(node.name, node.incarnation, place, clock, str(kind), topic, source, incarnation, counter)
        if message is not None and kind in (Kind.PUBLISH, Kind.DELIVER):
            event = event._replace(digest=crc32(repr((topic, *message)).encode()))
        self.events.append(event._replace(**rest))


def clean_trace(seed: int, total_order: bool = False, nodes: int | None = None, steps: int | None = None) -> Trace:
    """A valid trace, a pure function of its arguments; with `total_order` it keeps P9 as well."""
    world = ModelWorld(seed, total_order, nodes, steps)
    events = world.run()
    return Trace(header(events, ALL_PROMISES if total_order else CAUSAL_PROMISES, f"model-{seed}"), events)


def header(events: list[Event], promises: tuple[str, ...], run: str = "model") -> RunInfo:
    return RunInfo(run, "model", promises, nodes=len({event.node for event in events}))
