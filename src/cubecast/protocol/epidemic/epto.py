"""EpTO: total order by gossip (M. Matos, *Epidemic algorithms for large scale data dissemination*, chapter 5).

How it works. A process collects the events it publishes and hears of, and once per period δ sends them all, as one
ball, to K random others; a copy makes TTL hops. That reaches everybody with high probability, and no process is asked
whether it did. Meanwhile every process ages what it holds, round by round, until an event is so old that everybody
must have it, and delivers in the order of the timestamps (`epto_order.py`). What comes too late for its place is not
delivered, and the application is told: the order is certain, completeness is likely.

| paper | here |
| --- | --- |
| broadcast, algorithm 4, lines 6–10 | `Epto.publish`, `Order.broadcast` |
| receive BALL, lines 11–19 | `Epto.on_packet`, `Order.receive` |
| every δ, lines 20–28 | `Epto.on_timer`, `_round` |
| orderEvents, algorithm 5 | `Order.order` |
| getClock, updateClock, isDeliverable, figure 5.5 | `_stamp`, `_hear`, `EptoParameters.threshold_of` |
| view, Random(view, K) | `peers`, kept by the driver; `rng.sample` |

Added: holes are told (`Order`), a publisher that falls silent says how far it got (`_mark`), so that a hole at the end
is told too; a newcomer asks for the time before it publishes; `stability` says how likely everybody has an event.
Several topics share rounds, balls and the clock; who does not subscribe relays and orders all the same, silently.
Nothing to do means no timer: EpTO rests. What differs from print is listed in docs/papers/epto.md.
Follows decision 0058.
"""

from collections.abc import Hashable, Iterable, Sequence
from math import ceil, isfinite
from random import Random
from typing import Any, Final

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import ID_LIMIT, Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import Effects, Published, Released, Send, SetTimer, Subscribed, Unsubscribed
from cubecast.protocol.epidemic.epto_order import FIRST, Key, Order, stability_of
from cubecast.protocol.epidemic.epto_parameters import Ball, Clock, Entry, EptoParameters, Hello, Rule, Welcome

ROUND: Final = "round"
IDLE: Final = "idle"
MOST_HOPS: Final = 64
"""No process counts more: lg of all there could be."""
MOST_TOLD: Final = 64
"""Peers a newcomer is told of at once: gossip spreads the rest."""
BALL_BYTES: Final = 1 << 19
"""Payload after which a ball is full; one event alone may be larger."""


class Epto(Handlers):
    """The machine of one process. `settled` are topics it subscribed to before anything was published."""

    def __init__(
        self,
        node: NodeId,
        peers: Iterable[NodeId],
        parameters: EptoParameters,
        rng: Random,
        *,
        incarnation: Incarnation = 0,
        settled: Iterable[Topic] = (),
        newcomer: bool = False,
    ) -> None:
        self.node = node
        self.incarnation = incarnation
        self.parameters = parameters
        self.clock = 0.0
        self.topics = {topic: Order(topic, parameters, FIRST, complete=True) for topic in settled}
        self.published: dict[Topic, Counter] = {}
        self._released: dict[Topic, Counter] = {}
        self._rng = rng
        self._peers = dict.fromkeys(peer for peer in peers if peer != node)
        self._floor: Key = FIRST
        self._busy: dict[Topic, Order] = {}
        """Topics with events that are not delivered."""
        self._phase = 0.0
        self._round_set = False
        self._silent: dict[Topic, tuple[float, int]] = {}
        """Topics with a publication of ours of which the end may not be known: when to mark it, and how often still."""
        self._silence = parameters.idle * parameters.period
        self._idle_set = False
        lost = newcomer and parameters.clock is not Clock.GLOBAL and parameters.newcomer is Rule.CORRECTED
        self._asking = parameters.patience if lost else 0
        """Rounds left in which a neighbour may still tell us the time."""
        self._held: list[tuple[Topic, Sequence[bytes]]] = []
        self._measure()

    def _measure(self) -> None:
        """What follows from the number of processes."""
        self._view = tuple(self._peers)
        self.processes = len(self._view) + 1
        self.fanout = self.parameters.fanout_of(self.processes)
        self.most_hops = self.parameters.ttl_of(self.processes)
        self.threshold = self.parameters.threshold_of(self.processes)

    # The application's functions

    def on_start(self, now: float) -> Effects:
        self._phase = now + self.parameters.period * self._rng.random()
        return self._ask() if self._asking else []

    def publish(self, now: float, topic: Topic, payloads: Sequence[bytes], *, hurry: bool = False) -> Effects:
        """Whether the application waits changes nothing: the next round takes whatever there is."""
        if self._asking:  # DEVIATION epto figure 5.5(b), line 2: a newcomer's clock does not begin at 0
            self._held.append((topic, payloads))
            return self._wake(now)
        ts = self._stamp(now)
        order = self._order(topic)
        first = self.published.get(topic, 0) + 1
        for counter, payload in enumerate(payloads, first):
            order.broadcast(self._own(counter), ts, payload)
        self.published[topic] = first + len(payloads) - 1
        self._busy[topic] = order
        effects: Effects = [Published(topic, first, len(payloads), (), payloads), *self._wake(now)]
        return effects + self._expect_silence(now, topic)

    def subscribe(self, now: float, topic: Topic) -> Effects:
        order = self._order(topic)
        if order.subscribed:
            raise LocalProtocolError(f"node {self.node} is already subscribed to {topic!r}; nothing was done")
        return [Subscribed(topic, order.subscribe())]

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        order = self.topics.get(topic)
        if order is None or not order.subscribed:
            raise LocalProtocolError(f"node {self.node} is not subscribed to {topic!r}; nothing was done")
        order.unsubscribe()
        self._settle(order)
        return [Unsubscribed(topic)]

    def stability(self, topic: Topic, message: MessageId) -> float | None:
        """How likely everybody has this event, which is here and not yet delivered; None if it is not."""
        order = self.topics.get(topic)
        for known in (*order.received.values(), *order.next_ball.values()) if order else ():
            if known.message == message:
                return stability_of(known.copies, self.processes)
        return None

    def released(self, topic: Topic) -> Counter:
        """How many of its own messages this process found stable."""
        return self._released.get(topic, 0)

    def _own(self, counter: Counter) -> MessageId:
        # DEVIATION epto algorithm 4, line 10: the incarnation is part of an event's identity.
        reused = self.parameters.identity is Rule.PRINTED
        return MessageId(self.node, 0 if reused else self.incarnation, counter)

    def _order(self, topic: Topic) -> Order:
        order = self.topics.get(topic)
        if order is None:
            order = self.topics[topic] = Order(topic, self.parameters, self._floor, complete=False)
        return order

    def _settle(self, order: Order) -> None:
        """Forget a topic of no interest; whatever begins there again, begins above all that was delivered."""
        if not order.at_rest:
            self._busy[order.name] = order
            return
        self._busy.pop(order.name, None)
        if not order.subscribed:
            self._floor = max(self._floor, order.last)
            del self.topics[order.name]

    # Clocks

    def _stamp(self, now: float) -> float:
        match self.parameters.clock:
            case Clock.GLOBAL:
                self.clock = max(self.clock, now)
            case Clock.LOGICAL:
                self.clock += self.parameters.tick
            case Clock.HYBRID:
                self.clock = max(self.clock + self.parameters.tick, now)
        return self.clock

    def _hear(self, ts: float) -> None:
        if self.parameters.clock is not Clock.GLOBAL and ts > self.clock:
            self.clock = ts

    def _told(self, now: float) -> Effects:
        """A neighbour told the time, or none will: what was held back is published."""
        self._asking = 0
        held, self._held = self._held, []
        return [effect for topic, payloads in held for effect in self.publish(now, topic, payloads)]

    def _ask(self) -> Effects:
        peers = self._sample()
        return [Send(peers, Hello(self.incarnation))] if peers else []

    # Reception

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        match packet:
            case Ball():
                self._check(packet)
                return self._receive(now, packet)
            case Hello():
                return self._meet(now, sender) or self._welcome(now, sender, ())
            case Welcome():
                return self._on_welcome(now, packet)
            case _:
                raise RemoteProtocolError(f"EpTO knows no {type(packet).__name__}")

    def _on_welcome(self, now: float, packet: Welcome) -> Effects:
        if not 0 <= packet.clock <= self.parameters.latest or len(packet.peers) > MOST_TOLD:
            raise RemoteProtocolError(f"a clock at {packet.clock}, or {len(packet.peers)} peers at once")
        self._hear(packet.clock)
        new = [peer for peer in dict.fromkeys(packet.peers) if peer != self.node and peer not in self._peers]
        self._peers |= dict.fromkeys(new)
        self._measure()
        effects: Effects = [Send(tuple(new), Hello(self.incarnation))] if new else []
        return effects + (self._told(now) if self._asking else [])

    def _welcome(self, now: float, peer: NodeId, peers: tuple[NodeId, ...]) -> Effects:
        """Who does not know the time itself does not answer."""
        return [] if self._asking else [Send((peer,), Welcome(self._time(now), peers))]

    def _meet(self, now: float, peer: NodeId) -> Effects:
        """A newcomer: of several who come at once, the later hears of the earlier."""
        if peer in self._peers or peer == self.node:
            return []
        told = tuple(self._rng.sample(self._view, min(MOST_TOLD, len(self._view))))
        self._peers[peer] = None
        self._measure()
        return self._welcome(now, peer, told)

    def _time(self, now: float) -> float:
        return max(self.clock, now) if self.parameters.clock is Clock.HYBRID else self.clock

    def _receive(self, now: float, ball: Ball) -> Effects:
        for topic, entries in ball.parts:
            order = self._order(topic)
            for entry in entries:
                self._hear(entry.ts)
                order.receive(entry, self.most_hops)
            self._settle(order)
        return [*(self._told(now) if self._asking else ()), *self._wake(now)]

    def _check(self, ball: Ball) -> None:
        """Before anything changes."""
        for topic, entries in ball.parts:
            for message, ts, ttl, _ in entries:
                if not is_event(message) or not 0 <= ttl <= MOST_HOPS:
                    raise RemoteProtocolError(f"no event has the id {message} or the ttl {ttl}")
                if not (isfinite(ts) and 0 <= ts <= self.parameters.latest):
                    raise RemoteProtocolError(f"an event from the time {ts}")
                mine = message[:2] == (self.node, self.incarnation)
                if mine and message.counter > self.published.get(topic, 0):
                    raise RemoteProtocolError(f"an event of ours, {message}, that we never published")

    # Rounds

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        if timer == IDLE:
            return self._mark(now)
        self._round_set = False
        effects: Effects = []
        if self._asking and self._held:
            self._asking -= 1
            effects += self._ask() if self._asking else self._told(now)
        self._round(effects)
        return effects + self._wake(now, after_round=True)

    def _round(self, effects: Effects) -> None:
        orders = list(self._busy.values())
        parts = [(order.name, entries) for order in orders if (entries := tuple(order.relay(self.most_hops)))]
        if parts:
            peers = self._sample()
            if peers:
                effects.extend(Send(peers, ball) for ball in balls(parts))
        for order in orders:
            order.order(self.threshold, effects)
            self._release(order, effects)
            self._settle(order)

    def _release(self, order: Order, effects: Effects) -> None:
        """What is stable as far as this process knows takes no more room; it was not acknowledged."""
        source, incarnation, _ = self._own(1)
        reached = order.at.get((source, incarnation), 0)
        if reached > self._released.get(order.name, 0):
            self._released[order.name] = reached
            effects.append(Released(order.name, reached))

    def _sample(self) -> tuple[NodeId, ...]:
        return tuple(self._rng.sample(self._view, self.fanout))

    def _wake(self, now: float, *, after_round: bool = False) -> Effects:
        """The next round, if there is anything to do in it and it is not already set."""
        if self._round_set or not (self._held or self._busy):
            return []
        self._round_set = True
        period, drift = self.parameters.period, self.parameters.drift
        if not after_round:  # the rounds of a process that rested go on in their old rhythm
            passed = (now - self._phase) / period
            at = self._phase + period * ceil(passed) if passed > -1 else now + period
            at = at if at > now else at + period
        elif drift:
            at = now + max(0.0, period * self._rng.uniform(1 - drift, 1 + drift))
        else:  # a timer may come late, or early by a rounding: neither shifts the rounds that follow
            at = period + (self._phase if abs(now - self._phase) < period / 2 else now)
        self._phase = at
        return [SetTimer(ROUND, at)]

    # A publisher that falls silent

    def _expect_silence(self, now: float, topic: Topic) -> Effects:
        if not self.parameters.idle:
            return []
        self._silent[topic] = (now + self._silence, self.parameters.markers)
        return self._wait_for_silence(now)

    def _wait_for_silence(self, now: float) -> Effects:
        if self._idle_set or not self._silent:
            return []
        self._idle_set = True
        return [SetTimer(IDLE, max(now + self.parameters.period, min(due for due, _ in self._silent.values())))]

    def _mark(self, now: float) -> Effects:
        self._idle_set = False
        for topic, (due, left) in list(self._silent.items()):
            if due <= now + self.parameters.period:
                del self._silent[topic]
                if left:
                    order = self._order(topic)
                    order.broadcast(self._own(self.published[topic]), self._stamp(now), None)
                    self._busy[topic] = order
                    self._silent[topic] = (now + self._silence, left - 1)
        return self._wake(now) + self._wait_for_silence(now)

    # Peers

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        self._peers.pop(peer, None)
        self._measure()
        return []

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        return self._meet(now, peer)

    @property
    def peers(self) -> tuple[NodeId, ...]:
        return self._view

    # For tests and people

    def invariants(self) -> None:
        for order in self.topics.values():
            order.invariants()
            assert order.at_rest == (order.name not in self._busy), f"{order.name}: busy or not?"
        assert self._round_set or not (self._busy or self._held), "something to do and no round to do it in"
        assert not (self._held and not self._asking), "publications held back for nothing"

    def waiting(self) -> list[str]:
        held = [f"{len(payloads)} to publish in {topic!r} once the time is known" for topic, payloads in self._held]
        return held + [
            f"{len(order.received | order.next_ball)} events of {order.name!r} that are not stable yet"
            for order in self._busy.values()
        ]


def is_event(message: MessageId) -> bool:
    """Could some process have published it?"""
    return 0 <= message.source < ID_LIMIT and message.incarnation >= 0 and 1 <= message.counter < ID_LIMIT


def balls(parts: Sequence[tuple[Topic, tuple[Entry, ...]]]) -> list[Ball]:
    """All entries, in as few balls as their size allows."""
    made: list[Ball] = []
    current: list[tuple[Topic, tuple[Entry, ...]]] = []
    room = BALL_BYTES
    for topic, entries in parts:
        first = 0
        for place, entry in enumerate(entries):
            size = ENTRY_BYTES + len(entry.payload or b"")
            if size > room and (place > first or current):
                if place > first:
                    current.append((topic, entries[first:place]))
                made.append(Ball(tuple(current)))
                current, first, room = [], place, BALL_BYTES
            room -= size
        current.append((topic, entries[first:]))
    return [*made, Ball(tuple(current))]


ENTRY_BYTES: Final = 48
"""What an entry weighs besides its payload, generously."""
