"""SRPT: the single-rooted per-topic trees VCube-PS is compared with (thesis 2019, §5.6; roots and trees over VCube).

SRPT-S. Every topic has one root. A publisher hands its message to the root, which sends it down *its* VCube tree of all
ids; branches without subscribers are cut, ids on the way to a subscriber that do not subscribe relay (false positives).
SRPT-B. The tree spans brokers only; a broker sends what it receives to the subscribers attached to it, one by one.

The delivery rule is VCube-PS' (causal barriers). There are no acknowledgements: nothing waits for them, and half of the
nodes of the papers' Table 5.1 have nothing to send. Subscriptions travel the same way to all nodes of the tree.
"""

from collections.abc import Callable, Sequence
from typing import Any

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId
from cubecast.protocol.effects import Deliver, Effects, Published, Send, Subscribed, Unsubscribed
from cubecast.protocol.hypercube.delivery import Delivery, FirstReception
from cubecast.protocol.hypercube.packets import Entry, Operation, Pub, Sub, Uns
from cubecast.protocol.hypercube.subscribers import FaultFree, Roster, Subscribers
from cubecast.protocol.hypercube.topology import block, first_child
from cubecast.protocol.masks import ids_of, mask_of


class Brokers:
    """Who is in the tree, and who hangs on whom. With every id a broker this is SRPT-S."""

    def __init__(self, present: int, brokers: int) -> None:
        self.tree = present & brokers
        self._attached: dict[NodeId, NodeId] = {}

    def attach(self, node: NodeId, broker: NodeId) -> None:
        self._attached[node] = broker

    @property
    def serve_others(self) -> bool:
        return bool(self._attached)

    def served_by(self, broker: NodeId) -> tuple[NodeId, ...]:
        return tuple(node for node, its in self._attached.items() if its == broker)


def spread(present: int, count: int) -> tuple[Brokers, list[NodeId]]:
    """The first `count` ids that are there are brokers; everybody else is attached evenly, by remainder."""
    nodes = list(ids_of(present))
    chosen, rest = nodes[:count], nodes[count:]
    brokers = Brokers(present, mask_of(chosen))
    for node in rest:
        brokers.attach(node, chosen[node % len(chosen)])
    return brokers, chosen


class Topic:
    __slots__ = ("delivery", "name", "published", "root", "routes", "view")

    def __init__(self, name: str, root: NodeId, view: Subscribers, mode: FirstReception) -> None:
        self.name = name
        self.root = root
        self.view = view
        self.published: Counter = 0
        self.delivery = Delivery(name, mode)
        self.routes: tuple[int, dict[int, tuple[NodeId, ...]]] = (-1, {})  # for which members, height → children


class Srpt(FaultFree):
    """The machine of one node, broker or not."""

    def __init__(
        self,
        node: NodeId,
        dimension: int,
        brokers: Brokers,
        root_of: Callable[[str], NodeId],
        *,
        incarnation: Incarnation = 0,
        first_reception: FirstReception = FirstReception.BLOCK,
        initial: dict[str, Roster] | None = None,
    ) -> None:
        self.node = node
        self.dimension = dimension
        self.tree = brokers.tree
        self.attached = brokers.served_by(node)
        self.prunes = not brokers.serve_others
        self.incarnation = incarnation
        self.root_of = root_of
        self.first_reception = first_reception
        self.operations: Counter = 0
        self.topics: dict[str, Topic] = {}
        for name, roster in (initial or {}).items():
            # Nothing is acknowledged, so receptions are in order only on FIFO links; settled members need no guess.
            self._topic(name, Subscribers(node, dimension, roster)).delivery.settled = roster.mask

    # The application's functions

    def subscribe(self, now: float, topic: str) -> Effects:
        state = self._topic(topic)
        if state.view.subscribed:
            raise LocalProtocolError(f"node {self.node} is already subscribed to {topic!r}; nothing was done")
        self.operations += 1
        effects: Effects = [Subscribed(topic)]
        self._hand_over(state, Sub(topic, self.node, self.operations), effects)
        return effects

    def unsubscribe(self, now: float, topic: str) -> Effects:
        state = self._topic(topic)
        if not state.view.subscribed:
            raise LocalProtocolError(f"node {self.node} is not subscribed to {topic!r}; nothing was done")
        self.operations += 1
        effects: Effects = [Unsubscribed(topic)]
        self._hand_over(state, Uns(topic, self.node, self.operations), effects)
        state.delivery.leave()
        return effects

    def publish(self, now: float, topic: str, payloads: Sequence[bytes]) -> Effects:
        state = self._topic(topic)
        if not state.view.subscribed:
            raise LocalProtocolError(f"only subscribers publish: node {self.node} is not one of {topic!r}")
        effects: Effects = []
        for payload in payloads:
            state.published += 1
            message = MessageId(self.node, self.incarnation, state.published)
            packet = Pub(topic, message, (payload,), state.delivery.publish(message, effects))
            effects.append(Published(topic, message.counter, 1, packet.barrier, packet.payloads))
            effects.append(Deliver(topic, message, packet.payloads))
            self._hand_over(state, packet, effects)
        return effects

    def _hand_over(self, state: Topic, packet: Pub | Sub | Uns, effects: Effects) -> None:
        if self.node == state.root:
            self._down(state, packet, self.dimension, effects)
        else:
            effects.append(Send((state.root,), packet))
        if not isinstance(packet, Pub):
            self._operated(state, packet)

    # Reception

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        if type(packet) not in (Pub, Sub, Uns):
            raise RemoteProtocolError(f"node {sender} sent a {type(packet).__name__}, which SRPT does not know")
        effects: Effects = []
        state = self.topics.get(packet.topic) or self._topic(packet.topic)
        # No node sends down the tree to its root, so what reaches the root comes from a source.
        height = self.dimension if self.node == state.root else (self.node ^ sender).bit_length() - 1
        if self.tree >> self.node & 1:
            self._down(state, packet, height, effects)
        if not isinstance(packet, Pub):
            self._operated(state, packet)
        elif state.view.subscribed and packet.message.source != self.node:
            state.delivery.receive(packet, effects)
        return effects

    def _down(self, state: Topic, packet: Pub | Sub | Uns, height: int, effects: Effects) -> None:
        """To the children in the tree of the root, and to the attached subscribers."""
        targets = self._children(state, height, self.tree) if type(packet) is not Pub else self._routes(state, height)
        if self.attached:
            source = packet.message.source if isinstance(packet, Pub) else packet.source
            members = state.view.mask if isinstance(packet, Pub) else -1
            targets += tuple(node for node in self.attached if members >> node & 1 and node != source)
        if targets:
            effects.append(Send(targets, packet))

    def _routes(self, state: Topic, height: int) -> tuple[NodeId, ...]:
        mask, known = state.routes
        if mask != state.view.mask:
            known = {}
            state.routes = (state.view.mask, known)
        if height not in known:
            # With attached subscribers, every broker may serve one: the tree is not cut.
            wanted = state.view.mask if self.prunes else self.tree
            known[height] = self._children(state, height, wanted)
        return known[height]

    def _children(self, state: Topic, height: int, wanted: int) -> tuple[NodeId, ...]:
        """First id of the tree in every cluster that holds a wanted node."""
        found = []
        for s in range(1, height + 1):
            if block(self.node, s) & wanted:
                child = first_child(self.node, s, self.tree)
                if child is not None:
                    found.append(child)
        return tuple(found)

    def _operated(self, state: Topic, packet: Sub | Uns) -> None:
        operation = Operation.SUB if isinstance(packet, Sub) else Operation.UNS
        state.view.update(Entry(packet.source, operation, packet.counter))

    # The rest of the contract

    def invariants(self) -> None:
        for state in self.topics.values():
            state.delivery.invariants()

    def waiting(self) -> list[str]:
        return [f"node {self.node} {line}" for state in self.topics.values() for line in state.delivery.waiting()]

    def _topic(self, name: str, view: Subscribers | None = None) -> Topic:
        state = self.topics.get(name)
        if state is None:
            view = view or Subscribers(self.node, self.dimension)
            state = self.topics[name] = Topic(name, self.root_of(name), view, self.first_reception)
        return state
