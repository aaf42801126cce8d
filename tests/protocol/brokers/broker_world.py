"""Brokers with FIFO channels of random delays, faults within what f allows, and a judge of what their clients saw.

The judge knows publications, deliveries and cuts, and nothing of brokers: it rebuilds happened-before over all topics.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from cubecast.ids import MessageId
from cubecast.protocol.brokers.machine import BrokerParameters, LoCaPS
from cubecast.protocol.effects import CancelTimer, Cut, Deliver, Gap, Published, Send, SetTimer, Subscribed
from cubecast.protocol.filters import ALL, Filter

Mid = tuple[str, MessageId]
Publisher = tuple[int, int]
"""A node and its incarnation."""
NEVER = 1 << 62
"""The cut for a publisher that ended before a subscription began to get anything of it."""


@dataclass
class Seen:
    """One subscription as its client saw it."""

    node: int
    topic: str
    wanted: Filter
    cut: dict[Publisher, int] = field(default_factory=dict)
    delivered: list[MessageId] = field(default_factory=list)
    gaps: set[MessageId] = field(default_factory=set)
    confirmed: float | None = None
    ended: bool = False


class BrokerWorld:
    def __init__(
        self,
        parameters: BrokerParameters,
        rng: Random,
        delay: tuple[float, float] = (1.0, 20.0),
        make: Callable[..., Any] = LoCaPS,
    ) -> None:
        self.parameters = parameters
        self.rng = rng
        self.delay = delay
        self.now = 0.0
        self.machines = {node: make(node, parameters) for node in parameters.tree.neighbours}
        self.crashed: set[int] = set()
        self._make = make
        self._lives: dict[int, int] = defaultdict(int)
        self.cut_off: set[frozenset[int]] = set()
        self.slow: dict[frozenset[int], float] = {}
        self.attributes: dict[Mid, dict[str, Any]] = {}
        self.causes: dict[Mid, tuple[Mid, ...]] = {}
        self.subscriptions: list[Seen] = []
        self.packets = 0
        self._open: dict[tuple[int, str], Seen] = {}
        self._context: dict[int, list[Mid]] = defaultdict(list)
        self._requested: dict[tuple[int, str], list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        self._calendar: list[tuple[float, int, Any]] = []
        self._ties = 0
        self._last: dict[tuple[int, int], float] = {}
        self._timers: dict[tuple[int, Any], int] = {}

    def at(self, time: float, call: Any) -> None:
        self._ties += 1
        heapq.heappush(self._calendar, (time, self._ties, call))

    def run(self, until: float = float("inf")) -> None:
        while self._calendar and self._calendar[0][0] <= until:
            self.step()

    def step(self) -> bool:
        """The next thing that happens; False: nothing does."""
        if not self._calendar:
            return False
        self.now, _, call = heapq.heappop(self._calendar)
        call()
        return True

    # -- what clients and nemesis do ------------------------------------------------------------------------------

    def subscribe(self, node: int, topic: str, wanted: Filter = ALL) -> None:
        if self._serves(node) and (node, topic) not in self._open:
            seen = self._open[node, topic] = Seen(node, topic, wanted)
            self.subscriptions.append(seen)
            self._do(node, self.machines[node].subscribe(self.now, topic, None if wanted is ALL else str(wanted)))

    def _serves(self, node: int) -> bool:
        return node not in self.crashed and getattr(self.machines[node], "is_active", True)

    def unsubscribe(self, node: int, topic: str) -> None:
        seen = self._open.pop((node, topic), None)
        if seen is not None and node not in self.crashed:
            seen.ended = True
            self._do(node, self.machines[node].unsubscribe(self.now, topic))

    def publish(self, node: int, topic: str, attributes: dict[str, Any], count: int = 1) -> None:
        if self._serves(node):
            self._requested[node, topic].append((count, attributes))
            payloads = [b"x"] * count
            self._do(node, self.machines[node].publish(self.now, topic, payloads, attributes))

    def unadvertise(self, node: int, topic: str) -> None:
        machine = self.machines[node]
        if node not in self.crashed and topic in machine._publishers:
            self._do(node, machine.unadvertise(self.now, topic))

    def crash(self, node: int) -> None:
        self.crashed.add(node)
        for key in [key for key in self._open if key[0] == node]:
            self._open.pop(key).ended = True

    def restart(self, node: int) -> None:
        """With nothing but its id and the number of its life; what was under way to or from the last one is lost."""
        self.crashed.discard(node)
        self._lives[node] += 1
        self.machines[node] = self._make(node, self.parameters, incarnation=self._lives[node])
        self._context[node] = []
        for topic in [topic for one, topic in self._requested if one == node]:
            self._requested[node, topic].clear()
        self._do(node, self.machines[node].on_start(self.now))
        for peer in sorted(self.crashed):  # whoever calls them learns that nobody answers
            self.at(self.now + 20.0, lambda p=peer: p in self.crashed and self.suspect(node, p))

    def suspect(self, node: int, peer: int) -> None:
        if node not in self.crashed:
            self._do(node, self.machines[node].on_peer_down(self.now, peer))

    def trust(self, node: int, peer: int) -> None:
        if node not in self.crashed and peer not in self.crashed:
            self._do(node, self.machines[node].on_peer_up(self.now, peer))

    # -- interpreting effects -------------------------------------------------------------------------------------

    def _do(self, node: int, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    for peer in effect.peers:
                        self._send(node, peer, effect.packet)
                case SetTimer():
                    self._set_timer(node, effect.timer, effect.at)
                case CancelTimer():
                    self._timers.pop((node, effect.timer), None)
                case Published():
                    self._published(node, effect)
                case Deliver():
                    self._delivered(node, effect)
                case Cut():
                    source, incarnation, counter = effect.last_excluded
                    self._open[node, effect.topic].cut.setdefault((source, incarnation), counter)
                case Subscribed():
                    self._open[node, effect.topic].confirmed = self.now
                case Gap():
                    self._open[node, effect.topic].gaps.update(effect.missing)
                case _:
                    pass
        self.machines[node].invariants()

    def _send(self, node: int, peer: int, packet: Any) -> None:
        self.packets += 1
        pair = frozenset((node, peer))
        if pair in self.cut_off:
            return
        low, high = self.delay
        arrival = self.now + self.rng.uniform(low, high) * self.slow.get(pair, 1.0)
        arrival = self._last[node, peer] = max(arrival, self._last.get((node, peer), 0.0))
        lives = self._lives[node], self._lives[peer]

        def arrive() -> None:
            alike = lives == (self._lives[node], self._lives[peer])
            if alike and peer not in self.crashed and pair not in self.cut_off:
                self._do(peer, self.machines[peer].on_packet(self.now, node, packet))

        self.at(arrival, arrive)

    def _set_timer(self, node: int, timer: Any, at: float) -> None:
        self._ties += 1
        number, life = self._ties, self._lives[node]
        self._timers[node, timer] = number

        def fire() -> None:
            is_due = self._timers.get((node, timer)) == number and self._lives[node] == life
            if is_due and node not in self.crashed:
                del self._timers[node, timer]
                self._do(node, self.machines[node].on_timer(self.now, timer))

        self.at(at, fire)

    def _published(self, node: int, effect: Published) -> None:
        count, attributes = self._requested[node, effect.topic].pop(0)
        assert count == effect.count
        for counter in range(effect.counter, effect.counter + count):
            mid = (effect.topic, MessageId(node, self._lives[node], counter))
            self.attributes[mid] = {**attributes, "topic": effect.topic}
            self.causes[mid] = tuple(self._context[node])
            self._context[node] = [mid]

    def _delivered(self, node: int, effect: Deliver) -> None:
        seen = self._open[node, effect.topic]
        for offset in range(len(effect.payloads)):
            message = effect.message._replace(counter=effect.message.counter + offset)
            seen.delivered.append(message)
            if message.source != node:
                self._context[node].append((effect.topic, message))

    # -- the judge ------------------------------------------------------------------------------------------------

    def past_of(self, mid: Mid, known: dict[Mid, frozenset[Mid]]) -> frozenset[Mid]:
        if mid not in known:
            past = set(self.causes[mid])
            for cause in self.causes[mid]:
                past |= self.past_of(cause, known)
            known[mid] = frozenset(past)
        return known[mid]

    def judge(self) -> list[str]:
        """What is wrong with what clients saw: creation, duplicates, order, gaps, causes missing, permanent holds."""
        wrong: list[str] = []
        pasts: dict[Mid, frozenset[Mid]] = {}
        for mid in self.causes:  # in order of publication, so that no recursion is deep
            self.past_of(mid, pasts)
        for seen in self.subscriptions:
            wrong += [f"{seen.node} {seen.topic}: {what}" for what in self._judge_one(seen, pasts)]
        wrong += self._disagreements()
        for node, machine in self.machines.items():
            if node not in self.crashed and machine.waiting():
                wrong.append(f"{node} does not come to rest: {machine.waiting()}")
        return wrong

    def _judge_one(self, seen: Seen, pasts: dict[Mid, frozenset[Mid]]) -> list[str]:
        wrong = []
        position = {message: number for number, message in enumerate(seen.delivered)}
        if len(position) != len(seen.delivered):
            wrong.append("something was delivered twice")
        matching: dict[Publisher, list[int]] = defaultdict(list)
        for (topic, message), attributes in self.attributes.items():
            if topic == seen.topic and seen.wanted.matches(attributes):
                matching[message[:2]].append(message.counter)
        for message in seen.delivered:
            if message.counter not in matching[message[:2]]:
                wrong.append(f"{message} was never published, or does not match")
            for cause_topic, cause in pasts.get((seen.topic, message), ()):
                excluded = cause.counter <= seen.cut.get(cause[:2], NEVER) or cause in seen.gaps
                if cause_topic != seen.topic or cause.counter not in matching[cause[:2]] or excluded:
                    continue
                if position.get(cause, len(position)) > position[message]:
                    wrong.append(f"{message} before its cause {cause}")
        wrong += self._excluded_without_causes(seen, matching, pasts)
        complete = not seen.ended and seen.node not in self.crashed
        for source, counters in matching.items():
            lives = source[0] not in self.crashed and source[1] == self._lives[source[0]]
            got = [message.counter for message in seen.delivered if message[:2] == source]
            wanted = [
                one
                for one in counters
                if one > seen.cut.get(source, NEVER) and MessageId(*source, one) not in seen.gaps
            ]
            if got != wanted[: len(got)]:
                wrong.append(f"of {source}: {got[:20]} instead of {wanted[:20]}, cut {seen.cut.get(source)}")
            elif complete and lives and source in seen.cut and got != wanted:
                wrong.append(f"of {source}: only {len(got)} of {len(wanted)}, cut {seen.cut.get(source)}")
            elif complete and lives and source not in seen.cut and counters and self._advertised(source[0], seen.topic):
                wrong.append(f"no cut for {source}")
        return wrong

    def _disagreements(self) -> list[str]:
        """What one subscription got that is open to the end, all get that want it and begin before it."""
        open_ones = [seen for seen in self.subscriptions if not seen.ended and seen.node not in self.crashed]
        wrong = []
        for seen in open_ones:
            got = set(seen.delivered)
            for other in open_ones:
                for message in other.delivered if other.topic == seen.topic else ():
                    begun = message.counter > seen.cut.get(message[:2], NEVER) and message not in seen.gaps
                    if begun and message not in got and seen.wanted.matches(self.attributes[seen.topic, message]):
                        wrong.append(f"{seen.node} {seen.topic}: {message} is delivered at {other.node} and not here")
        return wrong

    def _excluded_without_causes(
        self, seen: Seen, matching: dict[Publisher, list[int]], pasts: dict[Mid, frozenset[Mid]]
    ) -> list[str]:
        """A beginning behind an event is behind its causes."""
        wrong = []
        for source, counters in matching.items():
            excluded = [one for one in counters if one <= seen.cut.get(source, 0)]
            last = MessageId(*source, max(excluded, default=0))
            for topic, cause in pasts.get((seen.topic, last), ()):
                included = cause.counter > seen.cut.get(cause[:2], NEVER) and cause not in seen.gaps
                if topic == seen.topic and included and cause.counter in matching.get(cause[:2], ()):
                    wrong.append(f"begins behind {last} and not behind its cause {cause}")
        return wrong

    def _advertised(self, node: int, topic: str) -> bool:
        return topic in self.machines[node]._publishers
