"""A small world for machines that gossip: latency, loss, drift, skewed clocks, churn. It judges by what it saw itself.

Nothing here comes from the simulator: what it finds, it finds independently.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

from cubecast.ids import MessageId
from cubecast.protocol.effects import Cut, Deliver, Gap, Published, Send, SetTimer
from cubecast.protocol.epidemic.epto import Epto
from cubecast.protocol.epidemic.epto_parameters import EptoParameters

TOPIC = "t"


@dataclass
class Life:
    """One incarnation of a process, and what its application saw."""

    node: int
    incarnation: int
    machine: Epto
    skew: float
    alive: bool = True
    published: list[MessageId] = field(default_factory=list)
    delivered: list[MessageId] = field(default_factory=list)
    missing: list[MessageId] = field(default_factory=list)
    begins: dict[tuple[int, int], int] = field(default_factory=dict)
    timers: dict[Any, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Nature:
    """Of a world: how long a copy takes, how many are lost, how wrong local clocks are."""

    latency: Callable[[Random], float] = lambda rng: rng.uniform(1, 100)
    loss: float = 0.0
    skew: float = 0.0


class GossipWorld:
    def __init__(self, processes: int, parameters: EptoParameters, nature: Nature, seed: int) -> None:
        self.rng = Random(seed)
        self.nature = nature
        self.parameters = parameters
        self.now = 0.0
        self.nodes = range(processes)
        self.lives: list[Life] = []
        self.at: dict[int, Life] = {}
        self.copies = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        for node in self.nodes:
            self.start(node, settled=(TOPIC,))

    def start(self, node: int, *, settled: tuple[str, ...] = ()) -> Life:
        incarnation = self.at[node].incarnation + 1 if node in self.at else 0
        machine = Epto(
            node,
            self.nodes,
            self.parameters,
            Random(self.rng.random()),
            incarnation=incarnation,
            settled=settled,
            newcomer=incarnation > 0,
        )
        life = Life(node, incarnation, machine, self.rng.uniform(-1, 1) * self.nature.skew + self.nature.skew)
        self.lives.append(life)
        self.at[node] = life
        self.apply(life, machine.on_start(self.now + life.skew))
        if not settled:
            self.apply(life, machine.subscribe(self.now + life.skew, TOPIC))
        return life

    def replace(self, node: int) -> Life:
        self.at[node].alive = False
        return self.start(node)

    def after(self, delay: float, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (self.now + delay, self._number, action))

    def publish(self, node: int, count: int = 1) -> None:
        life = self.at[node]
        if life.alive:
            self.apply(life, life.machine.publish(self.now + life.skew, TOPIC, [b"x"] * count))

    def apply(self, life: Life, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Send(peers, packet):
                    assert len(set(peers)) == len(peers) and life.node not in peers
                    for peer in peers:
                        self._send(life, peer, packet)
                case SetTimer(timer, at):
                    self._set_timer(life, timer, at)
                case Published(_, counter, count, _):
                    life.published += [MessageId(life.node, life.incarnation, counter + k) for k in range(count)]
                case Deliver(_, message, payloads):
                    life.delivered += [message._replace(counter=message.counter + k) for k in range(len(payloads))]
                case Gap(_, missing, _):
                    life.missing += missing
                case Cut(_, (source, incarnation, counter)):
                    assert (source, incarnation) not in life.begins
                    life.begins[source, incarnation] = counter
        life.machine.invariants()

    def _send(self, life: Life, peer: int, packet: Any) -> None:
        self.copies += sum(len(entries) for _, entries in getattr(packet, "parts", ()))
        if self.rng.random() >= self.nature.loss:
            self.after(self.nature.latency(self.rng), lambda: self._arrive(life.node, peer, packet))

    def _arrive(self, sender: int, peer: int, packet: Any) -> None:
        life = self.at[peer]
        if life.alive:
            self.apply(life, life.machine.on_packet(self.now + life.skew, sender, packet))

    def _set_timer(self, life: Life, timer: Any, at: float) -> None:
        life.timers[timer] = at
        self.after(max(0.0, at - life.skew - self.now), lambda: self._fire(life, timer, at))

    def _fire(self, life: Life, timer: Any, at: float) -> None:
        if life.alive and life.timers.get(timer) == at:
            del life.timers[timer]
            self.apply(life, life.machine.on_timer(max(at, self.now + life.skew), timer))

    def run(self, until: float = float("inf"), most: int = 2_000_000) -> None:
        """To the end of that time, or to rest."""
        for _ in range(most):
            if not self._events or self._events[0][0] > until:
                return
            self.now, _, action = heapq.heappop(self._events)
            action()
        raise AssertionError(f"no rest after {most} steps")

    # Judgement

    def inversions(self) -> int:
        """Neighbouring deliveries of one life that another life has the other way round."""
        places = [{message: k for k, message in enumerate(life.delivered)} for life in self.lives]
        pairs = {pair for life in self.lives for pair in pairwise(life.delivered)}
        return sum(a in place and b in place and place[a] > place[b] for a, b in pairs for place in places)

    def duplicates(self) -> int:
        return sum(n - 1 for life in self.lives for n in Counter(life.delivered).values())

    def inventions(self) -> int:
        published = {message for life in self.lives for message in life.published}
        return sum(message not in published for life in self.lives for message in life.delivered)

    def lost_own(self) -> int:
        """Publications of a living process that it did not deliver itself."""
        return sum(len(set(life.published) - set(life.delivered)) for life in self.lives if life.alive)

    def holes(self) -> dict[int, set[MessageId]]:
        """By process, among those that never died: what somebody delivered and it did not."""
        stable = [life for life in self.lives if life.alive and life.incarnation == 0]
        everything = {message for life in stable for message in life.delivered}
        return {life.node: everything - set(life.delivered) for life in stable}

    def untold(self, *, of_the_living: bool = False) -> int:
        living = {(life.node, life.incarnation) for life in self.lives if life.alive}
        untold = [m for node, holes in self.holes().items() for m in holes - set(self.at[node].missing)]
        return sum(message[:2] in living or not of_the_living for message in untold)

    def told_twice_or_wrongly(self) -> int:
        wrong = sum(len(set(life.missing) & set(life.delivered)) for life in self.lives)
        return wrong + sum(n - 1 for life in self.lives for n in Counter(life.missing).values())

    def sources_out_of_order(self) -> int:
        """Deliveries of one publisher that go backwards, or leave something out that was not told before."""
        wrong = 0
        for life in self.lives:
            reached: dict[tuple[int, int], int] = defaultdict(int)
            for source, incarnation, counter in life.delivered:
                wrong += counter <= reached[source, incarnation]
                reached[source, incarnation] = counter
        return wrong
