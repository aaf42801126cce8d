"""The simulated world: it owns time, carries packets, and is the only interpreter of effects on this side.

A run is a pure function of its parameters and seed: events are ordered by (time, order of scheduling), and everything
random was drawn from a stream of its own. `windows.py` is this file's shortcut for runs nobody watches: it leaves all
effects but sends and deliveries to `interpret`.
"""

import gc
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, assert_never

from cubecast.ids import MessageId, NodeId
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
    Link,
    Observe,
    Published,
    Reincarnated,
    Released,
    Send,
    SetTimer,
    Subscribed,
    Undelivered,
    Unlink,
    Unsubscribed,
)
from cubecast.protocol.inputs import Start, Timer
from cubecast.sim.lives import CALL, Lives, MachineFactory
from cubecast.sim.network import ARRIVAL, Network
from cubecast.sim.recorder import Recorder
from cubecast.sim.statistics import Statistics
from cubecast.sim.windows import Windows, outstanding
from cubecast.trace.schema import Kind
from cubecast.wire.codec import Codec


class World(Lives):
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
        together: Callable[[Callable[[NodeId], Any], NodeId], None] = lambda machine_of, node: None,
        absent: Iterable[NodeId] = (),
    ) -> None:
        super().__init__(nodes, make, absent)
        self.network = network
        self.recorder = recorder
        self.statistics = Statistics()
        self.on_deliver: Callable[[float, NodeId, Deliver], None] | None = None
        self.events = 0
        self._coded = coded
        self._encode, self._decode = codec.encode, codec.decode
        self._careful = careful
        self._together = together
        self._records_packets = recorder is not None and recorder.packets
        self._records_all = self._records_packets and recorder is not None and not recorder.receptions_only
        self._scheduler = network.scheduler
        self._cause: tuple[Any, int] | None = None  # while packets are recorded: the one being processed, and its hops
        self._under_way: dict[int, tuple[int, int]] = {}  # while packets are recorded: their number in the trace, hops
        self._timers: dict[tuple[NodeId, Hashable], int] = {}

    # Driving

    def start(self) -> None:
        """Let every node start; settled members (known to their machines beforehand) are recorded as subscribed."""
        for node in self.machines:
            if self.recorder is not None:
                self.recorder.of(node).started(self.now, self.incarnations[node])
                for topic in sorted(self.subscriptions[node]):
                    self.recorder.of(node).settled(self.now, topic)
            self._apply(node, self._ask(node, Start()))

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
            if node < 0 or node in away:
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
                    self.statistics.count_unusual(node, packet, time, subscriptions[node])
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
                self._check(node)
        return True

    def _check(self, node: NodeId) -> None:
        """What holds at each node, and over all of them that are there."""
        self.machines[node].invariants()
        self._together(lambda one: None if self.is_gone(one) else self.machines[one], node)

    def _call_or_keep(self, event: tuple[Any, ...]) -> None:
        """A scheduled call, or a packet for a node that is not there."""
        time, tie, node, sender, packet = event
        if node == CALL:
            self.statistics.fold_when_long()
            sender(*packet)
        elif node == ARRIVAL:
            self.network.take(time, tie, sender, packet)
        elif node in self.paused:
            self.paused[node].append(event)

    def frame(self, packet: Any, now: float) -> None:
        """Encode it; a publication that left a bundle, or was stamped anew, is as old as its first message."""
        packet.frame = self._encode(packet)
        packet.born = now
        if packet.publication and not packet.bundle:
            packet.born = self.statistics.births.get((packet.topic, packet.message), now)

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
            assert self.recorder is not None
            self.recorder.packet(Kind.RECEIVE, node, self.now, sender, packet, number, hops)
        return packet

    def resume(self, node: NodeId) -> None:
        if node in self.paused:
            self._away.discard(node)
        for event in self.paused.pop(node, []):
            if event[2] == CALL:
                self.at(self.now, event[3], *event[4])
            else:
                self._scheduler.push((self.now, event[1], *event[2:]))

    def finish(self) -> None:
        """Close every history: the run is over and nothing is under way."""
        for node in self.present():
            self._record_end(node, Kind.QUIESCENT)

    def has_agenda(self) -> bool:
        """Whether something else than timers and packets is still to come."""
        timers = set(self._timers.values())
        return any(event[2] == CALL and event[1] not in timers for event in self._scheduler.outstanding())

    def is_settled(self) -> bool:
        """Whether nobody waits for anything and no message is under way: what goes on is upkeep."""
        if any(self.machines[node].waiting() for node in self.present()):
            return False
        events = self._scheduler.outstanding()
        packets = (event[4][1] if event[2] == ARRIVAL else event[4] for event in events if event[2] != CALL)
        return not any(packet.publication for packet in packets)

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
                if self._records_all and self.recorder is not None:
                    self.recorder.packet(Kind.SEND, node, now, peer, packet, number, hops)
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
            self.recorder.effect(node, self.now, effect)
        if self.on_deliver is not None:
            self.on_deliver(self.now, node, effect)

    def interpret(self, node: NodeId, effect: Any) -> None:
        """Everything that happens a few times per publication at most."""
        if self.recorder is not None:
            self.recorder.effect(node, self.now, effect)
        match effect:
            case Published():
                incarnation = self.incarnations[node]
                for counter in range(effect.counter, effect.counter + effect.count):
                    self.statistics.births[effect.topic, MessageId(node, incarnation, counter)] = self.now
                self.statistics.published += effect.count
                self.statistics.barrier.append(len(effect.dependencies))
            case SetTimer():
                self._set_timer(node, effect)
            case CancelTimer():
                self._timers.pop((node, effect.timer), None)
            case Link():
                self._link(node, effect.peer)
            case Unlink():
                self._unlink(node, effect.peer)
            case Reincarnated():
                self._reincarnate(node, effect)
            case InterestMatched():
                self._match_interest(node, effect)
            case InterestKnown():
                self.interests_known[node] = self.now
            case Observe(kind="discard", message=MessageId()):
                self.statistics.duplicates += 1
            case (
                Acknowledged()
                | Failed()
                | Cut()
                | Subscribed()
                | Unsubscribed()
                | Gap()
                | Observe()
                | Released()
                | Undelivered()
            ):
                pass  # of interest to the trace only
            case _:
                assert_never(effect)

    def _reincarnate(self, node: NodeId, effect: Reincarnated) -> None:
        self.interests_known.pop(node, None)
        self.incarnations[node] = effect.incarnation

    def _match_interest(self, node: NodeId, effect: InterestMatched) -> None:
        (self.subscriptions[node].add if effect.on else self.subscriptions[node].discard)(effect.topic)

    def _set_timer(self, node: NodeId, effect: SetTimer) -> None:
        key, incarnation = (node, effect.timer), self.incarnations[node]

        def fire() -> None:
            if self._timers.get(key) != token or self.incarnations[node] != incarnation or self.is_gone(node):
                return
            if node in self.paused:
                self.paused[node].append((self.now, 0, CALL, fire, ()))
                return
            del self._timers[key]
            self._apply(node, self._ask(node, Timer(effect.timer)))
            if self._careful:
                self._check(node)

        self.at(max(effect.at, self.now), fire)
        token = self._timers[key] = self._scheduler.tie
