"""One world of chapter 4: processes that join one after another through random members, and what each sends and gets.

Times are milliseconds. Three networks: the cluster (0.1 to 0.3 ms and an exponential millisecond for each packet), the
same without jitter (*steady*: 1.0 to 1.1 ms), and PlanetLab (a fixed delay per pair, log-normal, median 40 ms).
"""

from collections.abc import Callable, Mapping, Sequence
from math import log
from random import Random
from typing import Any

from cubecast.ids import NodeId
from cubecast.protocol.effects import Deliver, Effects
from cubecast.protocol.families import find
from cubecast.sim.config import stream
from cubecast.sim.network import Delay, Network
from cubecast.sim.scenario import Coming, Contacts, machines
from cubecast.sim.world import World
from cubecast.wire.codec import codec_of

JOIN_GAP = 20.0
SETTLING = 5_000.0
SECOND = 1000.0
INTERVAL = 200.0
"""Between two messages: five per second."""
MACHINES = 15
"""Of the cluster, which processes share."""


class Scene:
    """`watch(scene, machine)` is called with every machine that is made."""

    def __init__(
        self,
        system: str,
        nodes: int,
        *,
        seed: int,
        network: str = "cluster",
        settings: Mapping[str, Any] | None = None,
        newcomers: int = 0,
        packet_cost: float = 0.0,
        watch: Callable[["Scene", Any], None] | None = None,
    ) -> None:
        self.rng = stream(seed, "scene")
        self.nodes = nodes
        size = nodes + newcomers
        self.copies = [0] * size
        """Messages that came to each process, duplicates too."""
        self.bytes_in = [0] * size
        self.bytes_out = [0] * size
        self.delivered: list[dict[tuple[str, int], float]] = [{} for _ in range(size)]
        self.sent: dict[tuple[str, int], float] = {}
        self.next_newcomer = nodes
        self._watch = watch
        family = find(system)
        self._contacts = contacts = Contacts()
        texts = {name: str(value) for name, value in (settings or {}).items()}
        self._make = machines(family, seed, size, [0], {}, texts, contacts=contacts, is_open=True)
        delay = _delays(network, stream(seed, "network"))
        if packet_cost:
            delay = _on_machines(delay, packet_cost, self)
        carried = Network(size, delay, processing=0.0, transmission=0.0, fifo_links=True)
        self.world = World(range(size), self._made, carried, codec_of(family), absent=range(1, size))
        self.world.on_deliver = self._on_deliver
        self.coming = Coming(self.world, family, contacts, stream(seed, "coming"), contacts_each=1, told_within=SECOND)

    def _made(self, node: NodeId, incarnation: int) -> Any:
        machine: Any = self._make(node, incarnation)
        machine.__class__ = _counting(type(machine))
        machine.scene = self
        if self._watch is not None:
            self._watch(self, machine)
        return machine

    def _on_deliver(self, now: float, node: NodeId, effect: Deliver) -> None:
        for place in range(len(effect.payloads)):
            self.delivered[node].setdefault((effect.topic, effect.message.counter + place), now)

    # -- what happens ------------------------------------------------------------------------------------------------

    def gather(self, topics: Sequence[str] = ("t",), gap: float = JOIN_GAP) -> float:
        """All come; when they have settled."""
        for topic in topics:
            self.world.at(0.0, self.world.subscribe, 0, topic)
        for place in range(1, self.nodes):
            self.world.at(gap * place, self._join, place, tuple(topics))
        settled = gap * self.nodes + SETTLING
        self.world.start()
        self.world.run(settled)
        return settled

    def _join(self, node: NodeId, topics: Sequence[str]) -> None:
        """All before it are there: no list of thousands is made for each."""
        self._contacts[node] = (self.rng.randrange(node),)
        self.world.join(node)
        for topic in topics:
            self.world.subscribe(node, topic)

    def newcomer(self, topics: Sequence[str] = ("t",)) -> None:
        self.coming.join(self.next_newcomer, tuple(topics))
        self.next_newcomer += 1

    def stream(
        self,
        source: NodeId,
        messages: int,
        *,
        topic: str = "t",
        size: int = 1024,
        start: float | None = None,
        first: int = 1,
    ) -> float:
        """Publish so many at five per second; when the last one is. `first`: the counter of the first of them."""
        begin = self.world.now if start is None else start
        for number in range(messages):
            when = begin + INTERVAL * number
            self.sent[topic, first + number] = when
            self.world.at(when, self.world.publish, source, topic, [bytes(size)])
        return begin + INTERVAL * (messages - 1)

    def run(self, until: float) -> None:
        self.world.run(until)

    def forget_traffic(self) -> None:
        for counts in (self.copies, self.bytes_in, self.bytes_out):
            counts[:] = [0] * len(counts)

    def source(self) -> NodeId:
        return self.rng.randrange(self.nodes)

    def flows(self) -> dict[NodeId, Any]:
        """The first flow of each process that is there."""
        machines: dict[NodeId, Any] = dict(self.world.machines)
        return {node: next(iter(machines[node].flows.values())) for node in self.world.present()}


_kinds: dict[type, type] = {}


def _counting(kind: type) -> type:
    """The same machine, whose packets are counted."""
    if kind not in _kinds:

        class Counting(kind):  # type: ignore[misc]
            def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
                scene, size = self.scene, len(packet.frame)
                scene.bytes_in[self.node] += size
                scene.bytes_out[sender] += size
                if packet.publication:
                    scene.copies[self.node] += len(packet.payloads)
                effects: Effects = super().on_packet(now, sender, packet)
                return effects

        _kinds[kind] = Counting
    return _kinds[kind]


def _delays(name: str, rng: Random) -> Delay:
    if name == "planetlab":
        pairs: dict[tuple[NodeId, NodeId], float] = {}

        def planetlab(source: NodeId, destination: NodeId) -> float:
            pair = (min(source, destination), max(source, destination))
            if pair not in pairs:
                pairs[pair] = rng.lognormvariate(log(40.0), 0.8)
            return pairs[pair]

        return planetlab
    uniform, exponential = rng.uniform, rng.expovariate
    if name == "steady":
        return lambda source, destination: uniform(1.0, 1.1)
    return lambda source, destination: uniform(0.1, 0.3) + exponential(1.0)


def _on_machines(delay: Delay, cost: float, scene: Scene) -> Delay:
    """Packets for processes on one machine are processed one after another, each for so long."""
    free = [0.0] * MACHINES

    def behind_others(source: NodeId, destination: NodeId) -> float:
        now, machine = scene.world.now, destination % MACHINES
        free[machine] = max(free[machine], now + delay(source, destination)) + cost
        return free[machine] - now

    return behind_others


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
