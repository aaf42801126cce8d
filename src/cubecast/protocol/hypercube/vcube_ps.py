"""VCube-PS: topic-based publish/subscribe, causal order per topic (de Araujo, thesis 2019, chapter 5), as published.

Theory of operation. A message travels the VCube spanning tree of its source, narrowed to the topic's subscribers as
each hop knows them (a SUB travels the tree of all nodes). A leaf acknowledges at once, an inner node after its last
child; the source takes its next message of that topic only when the previous one is fully acknowledged, so a node
*receives* each source's messages in order. Delivery waits for the message's causal barrier. Nodes do not fail.

| paper            | here                                                      |
|------------------|-----------------------------------------------------------|
| bcast_queue[t]   | `Topic.queue`, and `Topic.outstanding` for the head       |
| view[t]          | `Topic.view` (subscribers.py)                             |
| acks             | `Topic.acks`: publication → `Awaited` (subscribers.py); `Topic.gathering` for operations |
| causal_barrier, not_delvs, msgs, last_delvs (also called delv), first_rec | `Topic.delivery` (delivery.py) |

Known holes, kept because this is the reproduction (tests/scripts shows each in its smallest form): a joiner is routed
through before it has a view (V2), a newcomer can block for ever (V3), the old barrier survives an unsubscription (V4),
there are no incarnations (V5). `cubecast` closes them. Deviations are listed in docs/papers/vcube-ps.md.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId
from cubecast.protocol.contract import Outcomes
from cubecast.protocol.effects import Acknowledged, Effects, Observe, Published, Send, Subscribed, Unsubscribed
from cubecast.protocol.hypercube.delivery import Delivery, FirstReception
from cubecast.protocol.hypercube.packets import (
    Entry,
    Operation,
    OperationAck,
    OperationKey,
    Pub,
    PubAck,
    Sub,
    Uns,
    message_of,
)
from cubecast.protocol.hypercube.subscribers import Awaited, FaultFree, Roster, Subscribers
from cubecast.protocol.hypercube.topology import children


class Topic:
    """What a node keeps per topic."""

    __slots__ = ("acks", "delivery", "gathering", "name", "outstanding", "published", "queue", "view")

    def __init__(self, name: str, view: Subscribers, mode: FirstReception) -> None:
        self.name = name
        self.view = view
        self.delivery = Delivery(name, mode)
        self.queue: deque[bytes | Entry] = deque()  # a publication or an own operation
        self.outstanding: Pub | Sub | Uns | None = None
        self.acks: dict[int, Awaited] = {}  # by number of the message
        self.gathering: dict[OperationKey, list[Any]] = {}  # [parent or None, missing, members]
        self.published: Counter = 0


class VCubePS(FaultFree):
    """The machine of one node. `present` are the ids that nodes hold; `initial` views start an experiment settled."""

    __slots__ = (
        *("_everyone", "_handlers", "dimension", "first_reception", "incarnation"),
        *("node", "operations", "present", "topics"),
    )

    def __init__(
        self,
        node: NodeId,
        dimension: int,
        present: int,
        *,
        incarnation: Incarnation = 0,
        first_reception: FirstReception = FirstReception.BLOCK,
        initial: dict[str, Roster] | None = None,
    ) -> None:
        self.node = node
        self.dimension = dimension
        self.present = present
        self.incarnation = incarnation
        self.first_reception = first_reception
        self.operations: Counter = 0  # numbers this node's SUB and UNS
        self.topics = {
            name: Topic(name, Subscribers(node, dimension, roster), first_reception)
            for name, roster in (initial or {}).items()
        }
        self._everyone = [children(node, h, present) for h in range(dimension + 1)]
        self._handlers = {
            Sub: self.on_sub,
            Uns: self.on_uns,
            OperationAck: self.on_operation_ack,
        }

    # The application's functions (algorithm 3)

    def subscribe(self, now: float, topic: str) -> Effects:
        state = self._topic(topic)
        if state.view.subscribed:
            raise LocalProtocolError(f"node {self.node} is already subscribed to {topic!r}; nothing was done")
        if self._leaving(state):
            raise LocalProtocolError(f"node {self.node} is still leaving {topic!r}; subscribe after `unsubscribed`")
        state.view = Subscribers(self.node, self.dimension)
        return self._operate(state, Operation.SUB)

    def unsubscribe(self, now: float, topic: str) -> Effects:
        state = self._topic(topic)
        if not state.view.subscribed:
            raise LocalProtocolError(f"node {self.node} is not subscribed to {topic!r}; nothing was done")
        return self._operate(state, Operation.UNS)

    def _operate(self, state: Topic, operation: Operation) -> Effects:
        self.operations += 1
        entry = Entry(self.node, operation, self.operations)
        state.view.update(entry)
        state.queue.append(entry)
        return self._propagate(state)

    def publish(self, now: float, topic: str, payloads: Sequence[bytes]) -> Effects:
        state = self._topic(topic)
        if not state.view.subscribed:
            raise LocalProtocolError(f"only subscribers publish: node {self.node} is not one of {topic!r}")
        state.queue.extend(payloads)
        return self._propagate(state)

    # Propagation (algorithm 4, first task)

    def _propagate(self, state: Topic) -> Effects:
        """Broadcast queued messages until one has to be acknowledged by another node."""
        effects: Effects = []
        while state.queue and state.outstanding is None:
            head = state.queue.popleft()
            if not isinstance(head, Entry):
                packet: Pub | Sub | Uns = self._start_pub(state, head, effects)
            elif head.operation is Operation.SUB:
                packet = Sub(state.name, self.node, head.counter)
            else:
                packet = Uns(state.name, self.node, head.counter)
            if self._send_down(state, packet, effects):
                state.outstanding = packet
            else:
                self._completed(state, packet, [], effects)
        return effects

    def _send_down(self, state: Topic, packet: Pub | Sub | Uns, effects: Effects) -> bool:
        """An own message to the children; False when there are none."""
        place = state.view.place_below(None)
        targets = self._everyone[self.dimension] if type(packet) is Sub else place.children
        if not targets:
            return False
        if isinstance(packet, Pub):
            assert place.awaited is not None
            state.acks[packet.number] = place.awaited
        else:
            state.gathering[packet.key] = [None, len(targets), []]
        effects.append(Send(targets, packet))
        return True

    def _start_pub(self, state: Topic, payload: bytes, effects: Effects) -> Pub:
        # DEVIATION vcube-ps §5.5.1: publications are numbered per topic and operations apart; counters are only ever
        # compared within one source, topic and kind, so no run differs, and traces get gapless counters.
        state.published += 1
        message = MessageId(self.node, self.incarnation, state.published)
        packet = Pub(state.name, message, (payload,), state.delivery.publish(message, effects))
        effects.append(Published(state.name, message.counter, 1, packet.barrier, packet.payloads))
        effects.append(packet.delivery)
        return packet

    def _completed(self, state: Topic, packet: Any, gathered: list[Entry], effects: Effects) -> None:
        """The last acknowledgement of an own message arrived, or none had to be sent."""
        state.outstanding = None
        if type(packet) is Pub:
            effects.append(Acknowledged(state.name, packet.message.counter))
        elif type(packet) is Sub:
            self._merge(state, gathered)
            effects.append(Subscribed(state.name))
        else:
            state.delivery.leave()
            effects.append(Unsubscribed(state.name))

    # Reception (algorithm 4, second task)

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        kind = type(packet)
        if kind is PubAck:
            return self.on_pub_ack(sender, packet)
        if kind is Pub:
            return self.on_pub(sender, packet)
        handler = self._handlers.get(kind)
        if handler is None:
            raise RemoteProtocolError(f"node {sender} sent a {kind.__name__}, which VCube-PS does not know")
        return handler(sender, packet)  # type: ignore[operator,no-any-return]

    def on_packets(self, arrivals: Iterable[tuple[int, float, NodeId, Any]], outcomes: Outcomes) -> None:
        """The two things nearly all packets lead to, written out: a publication is passed on and received, as in
        `on_pub`, an acknowledgement is counted or passed on, as in `on_pub_ack`. `on_packet` does the rest."""
        sent_by, peers, packets = outcomes.sent_by.append, outcomes.peers.append, outcomes.packets.append
        passed, topic = outcomes.passed.append, None
        for number, now, sender, packet in arrivals:
            kind = type(packet)
            if kind is PubAck or kind is Pub:
                if packet.topic is not topic:
                    topic = packet.topic
                    state = self._topic(topic)
                    acks, places, subscribed = state.acks, state.view.places, state.view.subscribed
                    passes, receive = state.delivery.passes, state.delivery.receive
                if kind is PubAck:
                    if packet.number in acks:
                        parent, _, awaited = acks[packet.number]
                        if awaited is not None:
                            acks[packet.number] = awaited
                            continue
                        if parent:
                            del acks[packet.number]
                            sent_by(number)
                            peers(parent)
                            packets(packet)
                            continue
                elif subscribed and sender in places:
                    children, parent, awaited = places[sender]
                    sent_by(number)
                    if awaited is not None:
                        acks[packet.number] = awaited
                        peers(children)
                        packets(packet)
                    else:
                        peers(parent)
                        packets(packet.acknowledgement)
                    if passes(packet):
                        passed(number)
                    else:
                        effects: Effects = []
                        receive(packet, effects)
                        outcomes.add(number, effects)
                    continue
            outcomes.add(number, self.on_packet(now, sender, packet))
            topic = None

    def on_pub(self, sender: NodeId, packet: Pub) -> Effects:
        state = self.topics.get(packet.topic) or self._topic(packet.topic)
        view = state.view
        children, parent, awaited = view.places.get(sender) or view.place_below(sender)
        if awaited is not None:
            state.acks[packet.number] = awaited
            effects: Effects = [Send(children, packet)]
        else:
            effects = [Send(parent, packet.acknowledgement)]
        if view.subscribed:
            state.delivery.receive(packet, effects)
        return effects

    def on_sub(self, sender: NodeId, packet: Sub) -> Effects:
        state = self._topic(packet.topic)
        effects = self._relay(state, sender, packet, self._everyone[(self.node ^ sender).bit_length() - 1])
        if state.view.subscribed:
            state.view.update(Entry(packet.source, Operation.SUB, packet.counter))
        return effects

    def on_uns(self, sender: NodeId, packet: Uns) -> Effects:
        state = self._topic(packet.topic)
        targets = state.view.children_below(sender)
        effects = self._relay(state, sender, packet, targets)
        if state.view.subscribed:
            state.view.update(Entry(packet.source, Operation.UNS, packet.counter))
            state.delivery.forget_reception(packet.source)
        return effects

    def _relay(self, state: Topic, sender: NodeId, packet: Sub | Uns, targets: tuple[NodeId, ...]) -> Effects:
        if targets:
            state.gathering[packet.key] = [sender, len(targets), []]
            return [Send(targets, packet)]
        return [Send((sender,), OperationAck(packet.topic, *packet.key, self._own_entry(state, packet.key[0])))]

    # Acknowledgements

    def on_pub_ack(self, sender: NodeId, packet: PubAck) -> Effects:
        try:
            state = self.topics[packet.topic]
            parent, _, awaited = state.acks[packet.number]
        except KeyError:
            return [Observe("discard", packet.topic, peer=sender, detail="acknowledgement nobody waits for")]
        if awaited is not None:
            state.acks[packet.number] = awaited
            return []
        del state.acks[packet.number]
        if parent:
            return [Send(parent, packet)]
        effects: Effects = []
        self._completed(state, state.outstanding, [], effects)
        return effects + self._propagate(state)

    def on_operation_ack(self, sender: NodeId, packet: OperationAck) -> Effects:
        state = self._topic(packet.topic)
        entry = state.gathering.get(packet.key)
        if entry is None:
            return [Observe("discard", packet.topic, peer=sender, detail="acknowledgement nobody waits for")]
        if state.view.subscribed:
            self._merge(state, packet.members)
        parent, _, gathered = entry
        gathered.extend(packet.members)
        entry[1] -= 1
        if entry[1]:
            return []
        del state.gathering[packet.key]
        if parent is not None:
            members = (*gathered, *self._own_entry(state, packet.operation))
            return [Send((parent,), OperationAck(packet.topic, *packet.key, members))]
        effects: Effects = []
        self._completed(state, state.outstanding, gathered, effects)
        return effects + self._propagate(state)

    # The rest of the contract

    def invariants(self) -> None:
        for state in self.topics.values():
            head = state.outstanding
            awaited = head is None or (
                head.number in state.acks if isinstance(head, Pub) else head.key in state.gathering
            )
            assert awaited, "head of queue without pending ACK"
            assert all(entry[1] > 0 for entry in state.gathering.values()), "a completed acknowledgement is still kept"
            state.delivery.invariants()

    def waiting(self) -> list[str]:
        lines = []
        for state in self.topics.values():
            missing: list[tuple[Any, int]] = [(message_of(number), some.missing) for number, some in state.acks.items()]
            missing += [(key, entry[1]) for key, entry in state.gathering.items()]
            lines += [f"node {self.node} {state.name}: {n} acknowledgements of {key} missing" for key, n in missing]
            lines += [f"node {self.node} {line}" for line in state.delivery.waiting()]
        return lines

    def _topic(self, name: str) -> Topic:
        state = self.topics.get(name)
        if state is None:
            state = self.topics[name] = Topic(name, Subscribers(self.node, self.dimension), self.first_reception)
        return state

    def _leaving(self, state: Topic) -> bool:
        queued = any(type(head) is Entry and head.operation is Operation.UNS for head in state.queue)
        return queued or type(state.outstanding) is Uns

    def _own_entry(self, state: Topic, acknowledged: Operation) -> tuple[Entry, ...]:
        """What this node adds to an acknowledgement: only those of a SUB gather members, and only subscribers add."""
        # DEVIATION vcube-ps algorithm 4 line 100: the printed test is that nothing was received from the source, which
        # also lets acknowledgements of other kinds gather; §5.5.1 says that only those of a SUB do.
        own = state.view.entry(self.node) if acknowledged is Operation.SUB and state.view.subscribed else None
        return (own,) if own is not None else ()

    def _merge(self, state: Topic, entries: Sequence[Entry]) -> None:
        for entry in entries:
            state.view.update(entry)
