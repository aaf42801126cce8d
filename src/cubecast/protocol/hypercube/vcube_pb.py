"""VCube-PB: reliable causal publish/subscribe under crashes (de Araujo et al., SBRC 2017), as published.

Theory of operation. As VCube-PS, but nodes crash and a perfect failure detector tells; publishers need not subscribe;
membership changes spread with the testing rounds of VCube-Top. Every pending acknowledgement is kept as (parent,
child, message). When a child leaves or crashes, the message goes to the next subscriber of its cluster; when a source
crashes, everybody who has its last message broadcasts that anew. One message per source and topic is outstanding.

| paper                            | here                                                     |
|----------------------------------|----------------------------------------------------------|
| members[t]                       | `Topic.members`, a mask; `gone` are the crashed           |
| queue[t], T1(t)                  | `Topic.queue`, `_propagate`                               |
| acks                             | `Topic.acks`: message → parent → mask of children         |
| msgs                             | `Topic.last`: the last message of each source             |
| recs, delvs, first_rec, causal_barrier, CHECKRECS, CHECKCB | `Topic.delivery` (delivery.py)   |
| CHECKACKS, CHECKLEAVE            | `_check_acks`, `_check_leave`                             |

Known holes, kept: detection must be perfect (R2); what depends on a message that only crashed nodes had is held for
ever (R3); newcomers as in VCube-PS. Deviations are listed in docs/papers/vcube-pb.md.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any, Final

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import Acknowledged, Deliver, Effects, Observe, Published, Send, SetTimer, Unsubscribed
from cubecast.protocol.hypercube.delivery import Delivery, FirstReception
from cubecast.protocol.hypercube.packets import Entry, Membership, Operation, Pub, PubAck
from cubecast.protocol.hypercube.topology import children, cluster, first_child
from cubecast.protocol.masks import ids_of

ROOT: Final = -1  # in place of a parent: this node broadcasts the message itself
NOBODY: Final = -2  # the parent is gone; the dissemination goes on
ROUND: Final = "round"


class Topic:
    """What a node keeps per topic."""

    __slots__ = ("acks", "delivery", "entries", "last", "members", "name", "published", "queue", "received")

    def __init__(self, name: str, members: int) -> None:
        self.name = name
        self.members = members
        self.entries: dict[NodeId, Entry] = {}
        self.delivery = Delivery(name, FirstReception.BLOCK)
        self.queue: deque[bytes] = deque()
        self.published: Counter = 0
        self.acks: dict[MessageId, dict[NodeId, int]] = {}
        self.last: dict[NodeId, Pub] = {}
        self.received: dict[NodeId, Counter] = {}


class VCubePB(Handlers):
    """The machine of one node. `initial` are the subscribers per topic (masks) that everybody knows from the start."""

    def __init__(
        self,
        node: NodeId,
        dimension: int,
        present: int,
        *,
        incarnation: Incarnation = 0,
        initial: dict[str, int] | None = None,
        round_length: float = 1000.0,
    ) -> None:
        self.node = node
        self.dimension = dimension
        self.present = present
        self.incarnation = incarnation
        self.gone = 0
        self.operations: Counter = 0
        self.topics = {name: Topic(name, members) for name, members in (initial or {}).items()}
        self._round_length = round_length
        self._news: list[tuple[str, Entry]] = []

    # The application's functions (algorithm 5.1)

    def subscribe(self, now: float, topic: str) -> Effects:
        state = self._topic(topic)
        if self._subscribed(state):
            raise LocalProtocolError(f"node {self.node} is already subscribed to {topic!r}; nothing was done")
        return self._operate(now, state, Operation.SUB)

    def unsubscribe(self, now: float, topic: str) -> Effects:
        state = self._topic(topic)
        if not self._subscribed(state):
            raise LocalProtocolError(f"node {self.node} is not subscribed to {topic!r}; nothing was done")
        state.delivery.leave()
        return [Unsubscribed(topic), *self._operate(now, state, Operation.UNS)]

    def _operate(self, now: float, state: Topic, operation: Operation) -> Effects:
        """Kept locally and spread with the next testing round."""
        self.operations += 1
        return self._learn(now, state.name, Entry(self.node, operation, self.operations))

    def publish(self, now: float, topic: str, payloads: Sequence[bytes]) -> Effects:
        state = self._topic(topic)
        state.queue.extend(payloads)
        return self._propagate(state)

    # Task T1: one message outstanding per topic

    def _propagate(self, state: Topic) -> Effects:
        effects: Effects = []
        while state.queue and not self._outstanding(state):
            payload = state.queue.popleft()
            state.published += 1
            message = MessageId(self.node, self.incarnation, state.published)
            packet = Pub(state.name, message, (payload,), state.delivery.publish(message, effects))
            effects.append(Published(state.name, message.counter, 1, packet.barrier, packet.payloads))
            if self._subscribed(state):
                effects.append(Deliver(state.name, message, packet.payloads))
            state.last[self.node] = packet
            self._broadcast(state, packet, effects)
        return effects

    def _outstanding(self, state: Topic) -> bool:
        message = MessageId(self.node, self.incarnation, state.published)
        return ROOT in state.acks.get(message, ())

    def _broadcast(self, state: Topic, packet: Pub, effects: Effects, on_behalf_of: NodeId | None = None) -> None:
        """From this node as root, for an own message or in place of a source that is gone."""
        self._send(state, packet, ROOT, children(self.node, self.dimension, self._others(state)), effects)
        if on_behalf_of is not None:
            parents = state.acks[packet.message]
            parents[on_behalf_of] = parents[ROOT]
            self._check_acks(state, on_behalf_of, packet.message, effects)
        self._check_acks(state, ROOT, packet.message, effects)

    def _send(self, state: Topic, packet: Pub, parent: NodeId, targets: tuple[NodeId, ...], effects: Effects) -> None:
        pending = state.acks.setdefault(packet.message, {}).get(parent, 0)
        new = tuple(k for k in targets if not pending >> k & 1)
        for k in new:
            pending |= 1 << k
        state.acks[packet.message][parent] = pending
        if new:
            effects.append(Send(new, packet))

    # Reception (algorithm 5.2)

    def on_start(self, now: float) -> Effects:
        return []

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        match packet:
            case Pub():
                return self.on_tree(sender, packet)
            case PubAck():
                return self.on_ack(sender, packet)
            case Membership():
                return [one for topic, entry in packet.news for one in self._learn(now, topic, entry)]
            case _:
                raise RemoteProtocolError(f"node {sender} sent a {type(packet).__name__}, unknown to VCube-PB")

    def on_tree(self, sender: NodeId, packet: Pub) -> Effects:
        state, effects = self._topic(packet.topic), list[Any]()
        source, _, counter = packet.message
        if counter > state.received.get(source, 0):
            state.received[source] = counter
            state.last[source] = packet
            if self._subscribed(state):
                state.delivery.receive(packet, effects)
            if self.gone >> source & 1:
                # DEVIATION vcube-pb alg-5.2-44: the printed return acknowledges nobody, so that a sender who relays
                # for the crashed source waits for ever; it is answered when the new broadcast is complete.
                self._broadcast(state, packet, effects, on_behalf_of=sender)
                return effects
        else:
            effects.append(Observe("discard", packet.topic, packet.message))
        targets = children(self.node, cluster(self.node, sender) - 1, self._others(state))
        self._send(state, packet, sender, targets, effects)
        self._check_acks(state, sender, packet.message, effects)
        return effects

    def on_ack(self, sender: NodeId, packet: PubAck) -> Effects:
        state, effects = self._topic(packet.topic), list[Any]()
        for parent, pending in list(state.acks.get(packet.message, {}).items()):
            if pending >> sender & 1:
                state.acks[packet.message][parent] = pending & ~(1 << sender)
                self._check_acks(state, parent, packet.message, effects)
        return effects

    def _check_acks(self, state: Topic, parent: NodeId, message: MessageId, effects: Effects) -> None:
        """CHECKACKS: the last child answered, so answer the parent."""
        parents = state.acks[message]
        if parents[parent]:
            return
        del parents[parent]
        if not parents:
            del state.acks[message]
        if parent >= 0:
            effects.append(Send((parent,), PubAck(state.name, message)))
        elif parent == ROOT and message.source == self.node:
            effects.append(Acknowledged(state.name, message.counter))
            effects += self._propagate(state)

    # Leaves and crashes (algorithm 5.3)

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        effects: Effects = []
        if not self.gone >> peer & 1:
            self.gone |= 1 << peer
            for state in self.topics.values():
                self._check_leave(state, peer, effects)
        return effects

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        return []  # crashed nodes do not return in this model

    def _check_leave(self, state: Topic, j: NodeId, effects: Effects) -> None:
        """CHECKLEAVE: find another child for what j owes, go on without j as parent, replace j as a source."""
        state.members &= ~(1 << j)
        # DEVIATION vcube-pb alg-5.3-28: printed, every publisher's first reception is forgotten. Only a leaver's may
        # be: after a crash, what is relayed of j would count as its first message and overtake what is held of j.
        if not self.gone >> j & 1:
            state.delivery.forget_reception(j)
        k = first_child(self.node, cluster(self.node, j), self._others(state))
        for message, parents in list(state.acks.items()):
            # DEVIATION vcube-pb alg-5.3-31: acknowledgements of a message whose source is gone are kept, because its
            # new broadcast relies on them; only the link to a parent that is gone is cut.
            if j in parents:
                parents[NOBODY] = parents.get(NOBODY, 0) | parents.pop(j)
            # DEVIATION vcube-pb alg-5.3-33: printed q = j; the child y is meant.
            for parent in [parent for parent, pending in parents.items() if pending >> j & 1]:
                parents[parent] &= ~(1 << j)
                packet = state.last.get(message.source)
                if k is not None and packet is not None and packet.message == message:
                    self._send(state, packet, parent, (k,), effects)
            for parent in list(parents):
                if message in state.acks and parent in state.acks[message]:
                    self._check_acks(state, parent, message, effects)
        packet = state.last.get(j)
        if self.gone >> j & 1 and packet is not None:
            self._broadcast(state, packet, effects)

    # VCube-Top: membership changes travel with the testing rounds

    def _learn(self, now: float, topic: str, entry: Entry) -> Effects:
        state = self._topic(topic)
        known = state.entries.get(entry.node)
        if known is not None and known.counter >= entry.counter:
            return []
        state.entries[entry.node] = entry
        effects: Effects = [] if self._news else [SetTimer(ROUND, (now // self._round_length + 1) * self._round_length)]
        self._news.append((topic, entry))
        if entry.operation is Operation.SUB:
            state.members |= 1 << entry.node
        elif entry.node == self.node:  # CHECKLEAVE is about others: a node is never its own child, parent or source
            state.members &= ~(1 << self.node)
        else:
            self._check_leave(state, entry.node, effects)
        effects.append(Observe("view", topic, peer=entry.node))
        return effects

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        if timer != ROUND:
            raise LocalProtocolError(f"timer {timer!r} was never set")
        # DEVIATION vcube-pb §5.2: news are pushed to the nodes this one would test, and only while there are news, so
        # that a simulation comes to rest.
        news, self._news = tuple(self._news), []
        targets = children(self.node, self.dimension, self.present & ~self.gone & ~(1 << self.node))
        return [Send(targets, Membership(news))] if targets and news else []

    # The rest of the contract

    def invariants(self) -> None:
        for state in self.topics.values():
            for message, parents in state.acks.items():
                assert parents, f"{message} is kept without anybody to answer"
                assert all(not pending & self.gone for pending in parents.values()), "waits for a crashed child"
            state.delivery.invariants()

    def waiting(self) -> list[str]:
        lines = []
        for state in self.topics.values():
            for message, parents in state.acks.items():
                missing = sorted({k for pending in parents.values() for k in ids_of(pending)})
                lines.append(f"{state.name}: acknowledgements of {tuple(message)} missing from {missing}")
            lines += state.delivery.waiting()
        return lines

    def _topic(self, name: str) -> Topic:
        state = self.topics.get(name)
        if state is None:
            state = self.topics[name] = Topic(name, 0)
        return state

    def _subscribed(self, state: Topic) -> bool:
        return bool(state.members >> self.node & 1)

    def _others(self, state: Topic) -> int:
        return state.members & ~self.gone & ~(1 << self.node)
