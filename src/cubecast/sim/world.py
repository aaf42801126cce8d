"""The simulated world: it owns time, carries packets, and is the only interpreter of effects on this side.

A run is a pure function of its parameters and seed: events are ordered by (time, order of scheduling), and everything
random was drawn from a stream of its own. `windows.py` is this file's shortcut for runs nobody watches: it leaves all
effects but sends and deliveries to `interpret`.
"""

import gc
from collections.abc import Callable, Hashable, Sequence
from typing import Any, assert_never

from cubecast.errors import LocalProtocolError
from cubecast.ids import MessageId, NodeId
from cubecast.protocol.contract import Follower, Machine
from cubecast.protocol.effects import (
    Acknowledged,
    CancelTimer,
    Cut,
    Deliver,
    Effects,
    Failed,
    Gap,
    InterestKnown,
    InterestMatched,
    Observe,
    Published,
    Reincarnated,
    Send,
    SetTimer,
    Subscribed,
    Unsubscribed,
)
from cubecast.protocol.inputs import Interest
from cubecast.sim.network import Network
from cubecast.sim.recorder import Recorder
from cubecast.sim.statistics import Statistics
from cubecast.sim.windows import Windows, outstanding
from cubecast.trace.schema import Kind
from cubecast.wire.codec import Codec

MachineFactory = Callable[[NodeId, int], Machine]
"""(node, incarnation) → its machine."""

CALL = -1  # in place of a node: what follows is a function and its arguments, not a sender and a packet


class World:
    """Nodes, network and clock. `coded` sends every packet through the wire codec; `careful` checks invariants."""

    def __init__(
        self,
        nodes: Sequence[NodeId],
        make: MachineFactory,
        network: Network,
        codec: Codec,
        *,
        recorder: Recorder | None = None,
        coded: bool = False,
        careful: bool = False,
    ) -> None:
        self.nodes = tuple(nodes)
        self.network = network
        self.recorder = recorder
        self.statistics = Statistics()
        self.on_deliver: Callable[[float, NodeId, Deliver], None] | None = None
        self.now = 0.0
        self.events = 0
        self.incarnations = dict.fromkeys(nodes, 0)
        self.crashed: dict[NodeId, float] = {}
        self.paused: dict[NodeId, list[tuple[Any, ...]]] = {}
        self.subscriptions: dict[NodeId, set[str]] = {node: set() for node in nodes}
        self.interests_known: dict[NodeId, float] = {}  # since when
        self._make = make
        self._coded = coded
        self._encode, self._decode = codec.encode, codec.decode
        self._careful = careful
        self._records_packets = recorder is not None and recorder.packets
        self._records_all = self._records_packets and recorder is not None and not recorder.receptions_only
        self._away: set[NodeId] = set()  # crashed or paused
        self._scheduler = network.scheduler
        self._cause: tuple[Any, int] | None = None  # while packets are recorded: the one being processed, and its hops
        self._under_way: dict[int, tuple[int, int]] = {}  # while packets are recorded: their number in the trace, hops
        self._timers: dict[tuple[NodeId, Hashable], int] = {}
        self._acknowledged: dict[tuple[NodeId, int, str], int] = {}
        self.machines: dict[NodeId, Machine] = {node: make(node, 0) for node in nodes}

    # Driving

    def start(self) -> None:
        """Let every node start; settled members (known to their machines beforehand) are recorded as subscribed."""
        for node in self.nodes:
            self._record(node, Kind.START)
            for topic in sorted(self.subscriptions[node]):
                self._record(node, Kind.SUBSCRIBE, topic=topic)
                self._record(node, Kind.SUBSCRIBED, topic=topic, cut=())
            self._apply(node, self.machines[node].on_start(self.now))

    def at(self, time: float, call: Callable[..., object], *arguments: Any) -> None:
        """Call it when the clock shows `time`."""
        self._scheduler.push((time, self._scheduler.next_tie(), CALL, call, arguments))

    def run(self, until: float = float("inf"), most_events: float = float("inf")) -> bool:
        """Process events in order; True when none is left, False when a limit was reached first."""
        collecting = gc.isenabled()
        gc.disable()  # millions of live tuples and no cycles: collections would double the time
        try:
            whole = until == most_events == float("inf")
            if whole and (ahead := outstanding(self)) is not None:
                Windows(self).run(*ahead)
                return True
            return self._run(until, most_events)
        finally:
            if collecting:
                gc.enable()

    @property
    def silent(self) -> bool:
        """Whether nobody is to see event after event, and every node is there."""
        special = self._coded or self._careful or self._records_packets
        return self.recorder is None and self.on_deliver is None and not special and not self._away

    def _run(self, until: float, most_events: float) -> bool:
        """The hot loop; what is rare is elsewhere."""
        pop, machines, away, subscriptions = self._scheduler.pop, self.machines, self._away, self.subscriptions
        log, received = self.statistics.log.append, self.statistics.reception.append
        careful, special = self._careful, self._coded or self._records_packets
        events, silent = self.events, self.recorder is None and self.on_deliver is None
        send = self._sending()
        while (event := pop()) is not None:
            time, _, node, sender, packet = event
            if time > until or events >= most_events:
                self._scheduler.push(event)
                return False
            self.now = time
            if node == CALL or node in away:
                self._call_or_keep(event)
                continue
            self.events = events = events + 1
            log(time)
            log(node)
            if special:
                packet = self._observe_arrival(event)
            effects = machines[node].on_packet(time, sender, packet)
            arrived = None
            if packet.publication:
                if packet.bundle or packet.topic not in subscriptions[node] or packet.message.source == node:
                    self.statistics.count_unusual(node, packet, time, subscribed=packet.topic in subscriptions[node])
                else:
                    arrived = packet.message
                    received(time - packet.born)
            for effect in effects:
                if type(effect) is Send:
                    sent = effect.packet
                    if sent.frame is None:
                        self.frame(sent, time)
                    send(time, node, effect.peers, sent)
                elif type(effect) is not Deliver:
                    self.interpret(node, effect)
                elif effect.message is arrived and silent:
                    arrived = None
                    self.statistics.deliveries += len(effect.payloads)
                    log(effect.message.source)
                else:
                    self._deliver(node, effect, effect.message is arrived)
                    arrived = None if effect.message is arrived else arrived
            if arrived is not None:
                self.statistics.hold(node, packet.topic, arrived, time)
            self._cause = None
            if careful:
                machines[node].invariants()
        return True

    def _call_or_keep(self, event: tuple[Any, ...]) -> None:
        """A scheduled call, or a packet for a node that is not there."""
        _, _, node, sender, packet = event
        if node == CALL:
            self.statistics.fold_when_long()
            sender(*packet)
        elif node in self.paused:
            self.paused[node].append(event)

    def frame(self, packet: Any, now: float) -> None:
        """Encode it; a publication that left a bundle, or was stamped anew, is as old as its first message."""
        packet.frame = self._encode(packet)
        births = self.statistics.births
        packet.born = births.get((packet.topic, packet.message), now) if packet.publication else now

    def _observe_arrival(self, event: tuple[Any, ...]) -> Any:
        """The arriving packet, decoded if this world codes, with a row in the trace if it records packets."""
        _, tie, node, sender, sent = event
        packet = sent
        if self._coded:
            packet = self._decode(sent.frame)
            packet.born = sent.born
        if self._records_all or (packet.publication and self._records_packets):
            number, hops = self._under_way.pop(tie)
            self._cause = (packet, hops)
            self._record_packet(Kind.RECEIVE, node, sender, packet, number, hops)
        return packet

    # The application's side

    def publish(self, node: NodeId, topic: str, payloads: Sequence[bytes]) -> bool:
        """False when the node is down or its machine refused. A paused process asks when it goes on."""
        if node in self.paused:
            return self._postpone(node, self.publish, node, topic, payloads)
        return self._request(node, lambda machine: machine.publish(self.now, topic, payloads))

    def subscribe(self, node: NodeId, topic: str) -> bool:
        if node in self.paused:
            return self._postpone(node, self.subscribe, node, topic)
        if node in self.crashed or topic in self.subscriptions[node]:
            return False
        try:
            effects = self.machines[node].subscribe(self.now, topic)
        except LocalProtocolError:
            self.statistics.refused += 1
            return False
        self._record(node, Kind.SUBSCRIBE, topic=topic)
        self.subscriptions[node].add(topic)
        self._apply(node, effects)
        return True

    def unsubscribe(self, node: NodeId, topic: str) -> bool:
        if node in self.paused:
            return self._postpone(node, self.unsubscribe, node, topic)
        if node in self.crashed or topic not in self.subscriptions[node]:
            return False
        try:
            effects = self.machines[node].unsubscribe(self.now, topic)
        except LocalProtocolError:
            self.statistics.refused += 1
            return False
        stays = isinstance(self.machines[node], Follower) and Unsubscribed(topic) not in effects
        if not stays:  # an interest may still match the topic
            self._record(node, Kind.UNSUBSCRIBE, topic=topic)
            self.subscriptions[node].discard(topic)
        self._apply(node, effects)
        return True

    def follow(self, node: NodeId, interest: Interest | None) -> bool:
        """Declare an interest in topics, known or to come; False when the node is down or its protocol cannot."""
        if node in self.paused:
            return self._postpone(node, self.follow, node, interest)
        machine = self.machines[node]
        if node in self.crashed or not isinstance(machine, Follower):
            return False
        self.interests_known.pop(node, None)
        self._apply(node, machine.follow(self.now, interest))
        return True

    def _postpone(self, node: NodeId, call: Callable[..., object], *arguments: Any) -> bool:
        self.paused[node].append((self.now, 0, CALL, call, arguments))
        return True

    def _request(self, node: NodeId, call: Callable[[Machine], Effects]) -> bool:
        if node in self.crashed:
            self.statistics.refused += 1
            return False
        try:
            effects = call(self.machines[node])
        except LocalProtocolError:
            self.statistics.refused += 1
            return False
        self._apply(node, effects)
        return True

    # Faults

    def crash(self, node: NodeId) -> None:
        if node not in self.crashed:
            self._record(node, Kind.CRASH)
            self.crashed[node] = self.now
            self._away.add(node)
            self.paused.pop(node, None)
            self.subscriptions[node] = set()
            self.interests_known.pop(node, None)

    def restart(self, node: NodeId) -> None:
        """A new machine with the next incarnation; it remembers nothing."""
        if node in self.crashed:
            del self.crashed[node]
            self._away.discard(node)
            self.incarnations[node] += 1
            self.machines[node] = self._make(node, self.incarnations[node])
            self.network.free_at[node] = self.now
            self._record(node, Kind.START)
            self._apply(node, self.machines[node].on_start(self.now))

    def pause(self, node: NodeId) -> None:
        """The process stops (as with SIGSTOP): what arrives, and its timers, wait."""
        if node not in self.crashed:
            self.paused.setdefault(node, [])
            self._away.add(node)

    def resume(self, node: NodeId) -> None:
        if node in self.paused:
            self._away.discard(node)
        for event in self.paused.pop(node, []):
            if event[2] == CALL:
                self.at(self.now, event[3], *event[4])
            else:
                self._scheduler.push((self.now, event[1], *event[2:]))

    def suspect(self, node: NodeId, peer: NodeId) -> None:
        """Tell a node that its failure detector holds the peer faulty."""
        if node in self.paused:
            self._postpone(node, self.suspect, node, peer)
        elif node not in self.crashed:
            self._record(node, Kind.SUSPECT, peer=peer)
            self._apply(node, self.machines[node].on_peer_down(self.now, peer))

    def unsuspect(self, node: NodeId, peer: NodeId) -> None:
        if node in self.paused:
            self._postpone(node, self.unsuspect, node, peer)
        elif node not in self.crashed:
            self._apply(node, self.machines[node].on_peer_up(self.now, peer))

    def wrap(self, node: NodeId, between: Callable[[Machine], Machine]) -> None:
        """Put something between the world and this node's machine, and those of its later incarnations."""
        make = self._make
        self._make = lambda one, incarnation: between(make(one, incarnation)) if one == node else make(one, incarnation)
        self.machines[node] = between(self.machines[node])

    def finish(self) -> None:
        """Close every history: the run is over and nothing is under way."""
        for node in self.nodes:
            if node not in self.crashed:
                self._record(node, Kind.QUIESCENT)

    # Interpreting effects

    def _apply(self, node: NodeId, effects: Effects) -> None:
        """What a request or a timer brought about."""
        send = self._sending()
        for effect in effects:
            if type(effect) is Send:
                if effect.packet.frame is None:
                    self.frame(effect.packet, self.now)
                send(self.now, node, effect.peers, effect.packet)
            elif type(effect) is Deliver:
                self._deliver(node, effect, at_once=False)
            else:
                self.interpret(node, effect)

    def _sending(self) -> Callable[[float, NodeId, tuple[NodeId, ...], Any], None]:
        plain = self.network.plain and not self._records_packets
        return self.network.carry if plain else self._send_observed

    def _send_observed(self, now: float, node: NodeId, peers: tuple[NodeId, ...], packet: Any) -> None:
        """Send with a row in the trace, or over a network that is not plain."""
        hops = self._cause[1] + 1 if self._cause is not None and self._cause[0] is packet else 1
        recorded, carry = self._records_all or (packet.publication and self._records_packets), self.network.carry_one
        for peer in peers:
            copies = carry(now, node, peer, packet)
            if self._records_packets:
                # A lost packet gets a number too, for its `send` row; later copies share the number of the first.
                number = copies[0] if copies else self._scheduler.next_tie()
                if self._records_all:
                    self._record_packet(Kind.SEND, node, peer, packet, number, hops)
                if recorded:
                    self._under_way.update(dict.fromkeys(copies, (number, hops)))

    def _deliver(self, node: NodeId, effect: Deliver, at_once: bool) -> None:
        """`at_once`: the message arrived just now."""
        statistics = self.statistics
        statistics.deliveries += len(effect.payloads)
        statistics.log.append(effect.message.source)
        if not at_once and statistics.held:
            statistics.release(node, effect.topic, effect.message, self.now)
        if self.recorder is not None:
            self.recorder.delivered(node, self.incarnations[node], self.now, effect)
        if self.on_deliver is not None:
            self.on_deliver(self.now, node, effect)

    def interpret(self, node: NodeId, effect: Any) -> None:
        """Everything that happens a few times per publication at most."""
        incarnation, recorder = self.incarnations[node], self.recorder
        match effect:
            case Published():
                for counter in range(effect.counter, effect.counter + effect.count):
                    self.statistics.births[effect.topic, MessageId(node, incarnation, counter)] = self.now
                self.statistics.published += effect.count
                self.statistics.barrier.append(len(effect.dependencies))
                if recorder is not None:
                    recorder.published(node, incarnation, self.now, effect)
            case SetTimer():
                self._set_timer(node, effect)
            case CancelTimer():
                self._timers.pop((node, effect.timer), None)
            case Acknowledged():
                self._record_acknowledged(node, incarnation, effect)
            case Reincarnated():
                self._reincarnate(node, effect)
            case InterestMatched():
                self._match_interest(node, effect)
            case InterestKnown():
                self.interests_known[node] = self.now
            case Observe(kind="discard", message=MessageId()):
                self.statistics.duplicates += 1
                self._record_effect(node, effect)
            case Failed() | Cut() | Subscribed() | Unsubscribed() | Gap() | Observe():
                self._record_effect(node, effect)
            case _:
                assert_never(effect)

    def _reincarnate(self, node: NodeId, effect: Reincarnated) -> None:
        self.interests_known.pop(node, None)
        self._record(node, Kind.STOP)
        self.incarnations[node] = effect.incarnation
        self._record(node, Kind.START)
        for topic in effect.topics:
            self._record(node, Kind.SUBSCRIBE, topic=topic)

    def _match_interest(self, node: NodeId, effect: InterestMatched) -> None:
        self._record(node, Kind.SUBSCRIBE if effect.on else Kind.UNSUBSCRIBE, topic=effect.topic)
        (self.subscriptions[node].add if effect.on else self.subscriptions[node].discard)(effect.topic)

    def _set_timer(self, node: NodeId, effect: SetTimer) -> None:
        key, incarnation = (node, effect.timer), self.incarnations[node]

        def fire() -> None:
            if self._timers.get(key) != token or self.incarnations[node] != incarnation or node in self.crashed:
                return
            if node in self.paused:
                self.paused[node].append((self.now, 0, CALL, fire, ()))
                return
            del self._timers[key]
            self._apply(node, self.machines[node].on_timer(self.now, effect.timer))
            if self._careful:
                self.machines[node].invariants()

        self.at(max(effect.at, self.now), fire)
        token = self._timers[key] = self._scheduler.tie

    # Recording

    def _record(self, node: NodeId, kind: str, **columns: Any) -> None:
        if self.recorder is not None:
            self.recorder.row(node, self.incarnations[node], self.now, kind, **columns)

    def _record_packet(self, kind: str, node: NodeId, peer: NodeId, packet: Any, packet_id: int, hops: int) -> None:
        assert self.recorder is not None
        columns = {"packet": packet_id, "bytes": len(packet.frame), "hops": hops}
        self.recorder.packet(node, self.incarnations[node], self.now, kind, peer, packet, **columns)

    def _record_acknowledged(self, node: NodeId, incarnation: int, effect: Acknowledged) -> None:
        key = (node, incarnation, effect.topic)
        first = self._acknowledged.get(key, 0) + 1
        self._acknowledged[key] = effect.counter
        if self.recorder is not None:
            for counter in range(first, effect.counter + 1):
                message = MessageId(node, incarnation, counter)
                self.recorder.about(node, incarnation, self.now, Kind.ACKNOWLEDGED, effect.topic, message)

    def _record_effect(self, node: NodeId, effect: Failed | Cut | Subscribed | Unsubscribed | Gap | Observe) -> None:
        recorder, incarnation, now = self.recorder, self.incarnations[node], self.now
        if recorder is None:
            return
        match effect:
            case Failed():
                for counter in range(effect.counter, effect.counter + effect.count):
                    message = MessageId(node, incarnation, counter)
                    recorder.about(node, incarnation, now, Kind.FAILED, effect.topic, message, detail=effect.reason)
            case Cut():
                recorder.row(node, incarnation, now, Kind.CUT, topic=effect.topic, cut=(effect.last_excluded,))
            case Subscribed():
                recorder.row(node, incarnation, now, Kind.SUBSCRIBED, topic=effect.topic, cut=effect.cut)
            case Unsubscribed():
                recorder.row(node, incarnation, now, Kind.UNSUBSCRIBED, topic=effect.topic)
            case Gap():
                for message in effect.missing:
                    recorder.about(node, incarnation, now, Kind.GAP, effect.topic, message, detail=effect.reason)
            case Observe():
                recorder.observed(node, incarnation, now, effect)
            case _:
                assert_never(effect)
