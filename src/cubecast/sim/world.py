"""The simulated world: it owns time, carries packets, and is the only interpreter of effects on this side.

A run is a pure function of its parameters and seed: events are ordered by (time, order of scheduling), and everything
random was drawn from a stream of its own.
"""

import gc
from collections.abc import Callable, Hashable, Sequence
from typing import Any, assert_never

from cubecast.errors import LocalProtocolError
from cubecast.ids import MessageId, NodeId
from cubecast.protocol.contract import (
    Acknowledged,
    CancelTimer,
    Cut,
    Deliver,
    Effects,
    Failed,
    Gap,
    Machine,
    Observe,
    Published,
    Reincarnated,
    Send,
    SetTimer,
    Subscribed,
    Unsubscribed,
)
from cubecast.sim.network import Network
from cubecast.sim.recorder import Recorder
from cubecast.sim.scheduler import Scheduler
from cubecast.sim.statistics import Statistics
from cubecast.trace.schema import Kind
from cubecast.wire.codec import decode, encode

MachineFactory = Callable[[NodeId, int], Machine]
"""(node, incarnation) → its machine."""

FOLD_AT = 1 << 16
_CALL = -1  # in place of a sender: the event is a function (in place of a packet) and its arguments (of hops)


class World:
    """Nodes, network and clock. `coded` sends every packet through the wire codec; `careful` checks invariants."""

    def __init__(
        self,
        nodes: Sequence[NodeId],
        make: MachineFactory,
        network: Network,
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
        self._make = make
        self._coded = coded
        self._careful = careful
        self._scheduler = Scheduler()
        self._tie = 0
        self._births: dict[str, dict[MessageId, float]] = {}
        self._received: dict[tuple[NodeId, str, MessageId], float] = {}
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
        self._tie += 1
        self._scheduler.push((time, self._tie, 0, _CALL, call, arguments, 0))

    def run(self, until: float = float("inf"), most_events: float = float("inf")) -> bool:
        """Process events in order; True when none is left, False when a limit was reached first."""
        collecting = gc.isenabled()
        gc.disable()  # millions of live tuples and no cycles: collections would double the time
        try:
            return self._run(until, most_events)
        finally:
            if collecting:
                gc.enable()

    def _run(self, until: float, most_events: float) -> bool:
        pop, machines, statistics = self._scheduler.pop, self.machines, self.statistics
        log, log_append = statistics.log, statistics.log.append
        while (event := pop()) is not None:
            time, _, node, sender, packet, hops, size = event
            if time > until or self.events >= most_events:
                self._scheduler.push(event)
                return False
            self.now = time
            if sender == _CALL:
                packet(*hops)
                continue
            if node in self.crashed or node in self.paused:
                if node in self.paused:
                    self.paused[node].append(event)
                continue
            self.events += 1
            log_append(time)
            log_append(node)
            if len(log) > FOLD_AT:
                statistics.fold()
            if self.recorder is not None and self.recorder.packets:
                self._record_packet(Kind.RECEIVE, node, sender, packet, event[1], hops, size)
            if self._coded:
                packet = decode(packet)
            effects = machines[node].on_packet(time, sender, packet)
            if packet.publication:
                self._received_publication(node, packet, effects)
            if effects:
                self._apply(node, effects, packet, hops, size)
            if self._careful:
                machines[node].invariants()
        return True

    # The application's side

    def publish(self, node: NodeId, topic: str, payloads: Sequence[bytes]) -> bool:
        """False when the node is down or its machine refused."""
        return self._request(node, lambda machine: machine.publish(self.now, topic, payloads))

    def subscribe(self, node: NodeId, topic: str) -> bool:
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
        if node in self.crashed or topic not in self.subscriptions[node]:
            return False
        self._record(node, Kind.UNSUBSCRIBE, topic=topic)
        self.subscriptions[node].discard(topic)
        return self._request(node, lambda machine: machine.unsubscribe(self.now, topic))

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
            self.paused.pop(node, None)
            self.subscriptions[node] = set()

    def restart(self, node: NodeId) -> None:
        """A new machine with the next incarnation; it remembers nothing."""
        if node in self.crashed:
            del self.crashed[node]
            self.incarnations[node] += 1
            self.machines[node] = self._make(node, self.incarnations[node])
            self.network.free_at[node] = self.now
            self._record(node, Kind.START)
            self._apply(node, self.machines[node].on_start(self.now))

    def pause(self, node: NodeId) -> None:
        """The process stops (as with SIGSTOP): what arrives, and its timers, wait."""
        if node not in self.crashed:
            self.paused.setdefault(node, [])

    def resume(self, node: NodeId) -> None:
        for event in self.paused.pop(node, []):
            if event[3] == _CALL:
                self.at(self.now, event[4], *event[5])
            else:
                self._tie += 1
                self._scheduler.push((self.now, self._tie, *event[2:]))

    def suspect(self, node: NodeId, peer: NodeId) -> None:
        """Tell a node that its failure detector holds the peer faulty."""
        if node not in self.crashed:
            self._record(node, Kind.SUSPECT, peer=peer)
            self._apply(node, self.machines[node].on_peer_down(self.now, peer))

    def unsuspect(self, node: NodeId, peer: NodeId) -> None:
        if node not in self.crashed:
            self._apply(node, self.machines[node].on_peer_up(self.now, peer))

    def finish(self) -> None:
        """Close every history: the run is over and nothing is under way."""
        for node in self.nodes:
            if node not in self.crashed:
                self._record(node, Kind.QUIESCENT)

    # Interpreting effects

    def _apply(self, node: NodeId, effects: Effects, cause: Any = None, hops: int = 0, size: int = 0) -> None:
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                self._send(node, effect, cause, hops, size)  # type: ignore[arg-type]
            elif kind is Deliver:
                self._deliver(node, effect, cause)  # type: ignore[arg-type]
            else:
                self._apply_rare(node, effect)

    def _send(self, node: NodeId, effect: Send, cause: Any, hops: int, size: int) -> None:
        packet, statistics, network = effect.packet, self.statistics, self.network
        if packet is not cause:
            hops, size = 0, len(encode(packet))
        peers = effect.peers
        statistics.packets += len(peers)
        statistics.bytes += size * len(peers)
        if packet.publication:
            statistics.messages_sent += len(peers) * len(packet.payloads)
        plain = network.fate is None
        carried = encode(packet) if self._coded else packet
        push, now = self._scheduler.push, self.now
        for peer in peers:
            self._tie += 1
            if self.recorder is not None and self.recorder.packets:
                self._record_packet(Kind.SEND, node, peer, carried, self._tie, hops + 1, size)
            if plain:
                push((network.arrival(now, node, peer), self._tie, peer, node, carried, hops + 1, size))
            else:
                self._send_faulty(node, peer, carried, hops + 1, size)

    def _send_faulty(self, node: NodeId, peer: NodeId, carried: Any, hops: int, size: int) -> None:
        packet_id = self._tie
        for copy, time in enumerate(self.network.arrivals(self.now, node, peer)):
            if copy:
                self._tie += 1
            self._scheduler.push((time, packet_id if not copy else self._tie, peer, node, carried, hops, size))

    def _deliver(self, node: NodeId, effect: Deliver, cause: Any) -> None:
        statistics, message, topic = self.statistics, effect.message, effect.topic
        statistics.deliveries += len(effect.payloads)
        statistics.log.append(message.source)
        if self.recorder is not None:
            self.recorder.delivered(node, self.incarnations[node], self.now, effect)
        if message.source != node:
            birth = self._births[topic][message]
            received = self._received.pop((node, topic, message), self.now) if self._received else self.now
            for _ in effect.payloads:
                statistics.delivery.append(self.now - birth)
                statistics.holding.append(self.now - received)
        if self.on_deliver is not None:
            self.on_deliver(self.now, node, effect)

    def _received_publication(self, node: NodeId, packet: Any, effects: Effects) -> None:
        message = packet.message
        if message.source == node:
            return
        if packet.topic not in self.subscriptions[node]:
            self.statistics.false_positives += 1
            return
        self.statistics.reception.append(self.now - self._births[packet.topic][message])
        for effect in effects:
            if type(effect) is Deliver and effect.message == message:
                return
        self._received.setdefault((node, packet.topic, message), self.now)

    def _apply_rare(self, node: NodeId, effect: Any) -> None:
        """Everything that happens a few times per publication at most."""
        incarnation, recorder = self.incarnations[node], self.recorder
        match effect:
            case Published():
                births = self._births.setdefault(effect.topic, {})
                for counter in range(effect.counter, effect.counter + effect.count):
                    births[MessageId(node, incarnation, counter)] = self.now
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
            case Failed() | Cut() | Subscribed() | Unsubscribed() | Gap() | Observe():
                self._record_effect(node, effect)
            case _:
                assert_never(effect)

    def _reincarnate(self, node: NodeId, effect: Reincarnated) -> None:
        self._record(node, Kind.STOP)
        self.incarnations[node] = effect.incarnation
        self._record(node, Kind.START)
        for topic in effect.topics:
            self._record(node, Kind.SUBSCRIBE, topic=topic)

    def _set_timer(self, node: NodeId, effect: SetTimer) -> None:
        key, incarnation = (node, effect.timer), self.incarnations[node]

        def fire() -> None:
            if self._timers.get(key) != token or self.incarnations[node] != incarnation or node in self.crashed:
                return
            if node in self.paused:
                self.paused[node].append((self.now, 0, node, _CALL, fire, (), 0))
                return
            del self._timers[key]
            self._apply(node, self.machines[node].on_timer(self.now, effect.timer))
            if self._careful:
                self.machines[node].invariants()

        self.at(max(effect.at, self.now), fire)
        token = self._timers[key] = self._tie

    # Recording

    def _record(self, node: NodeId, kind: str, **columns: Any) -> None:
        if self.recorder is not None:
            self.recorder.row(node, self.incarnations[node], self.now, kind, **columns)

    def _record_packet(
        self, kind: str, node: NodeId, peer: NodeId, packet: Any, packet_id: int, hops: int, size: int
    ) -> None:
        assert self.recorder is not None
        whole = decode(packet) if self._coded else packet
        columns = {"packet": packet_id, "bytes": size, "hops": hops}
        self.recorder.packet(node, self.incarnations[node], self.now, kind, peer, whole, **columns)

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
