"""What the cubecast protocol costs: window, packets, control bytes, aggregation, state, join latency.

`--nodes N --messages M`."""

import argparse
import pickle
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.effects import Send
from cubecast.protocol.hypercube.topology import dimension_of
from cubecast.sim.config import SimConfig
from cubecast.sim.faults import Crash
from cubecast.sim.run import prepare, simulate_to_memory
from cubecast.sim.schedule import Action, Schedule
from cubecast.sim.swarm_run import run
from cubecast.wire.codec import codec_named

encode = codec_named("cubecast").encode

HOP = 102.0
"""Processing, transmission and a propagation of 100."""


@dataclass
class Throughput:
    """One publisher, everybody subscribed, everything handed over at once."""

    window: int
    fifo_links: bool
    time_per_message: float
    publications_sent: float
    """Packets with publications, per publication."""
    controls_sent: float
    """Other packets, per publication."""


def throughput(nodes: int, messages: int, window: int, *, fifo_links: bool) -> Throughput:
    config = SimConfig(
        "cubecast",
        nodes=nodes,
        publishers="1",
        messages=messages,
        window=1.0,
        propagation="constant:100" if fifo_links else "uniform:50:150",
        fifo_links=fifo_links,
        settings={"window": str(window), "max_batch": "1", "retry": "1000000.0"},
    )
    _, events, _ = simulate_to_memory(config, careful=False)
    finished = max(event.time for event in events if event.kind == "acknowledged")
    sends = [event for event in events if event.kind == "send" and event.time <= finished]
    publications = sum(event.topic is not None for event in sends)
    return Throughput(
        window, fifo_links, finished / messages, publications / messages, (len(sends) - publications) / messages
    )


@dataclass
class Traffic:
    """Packets of all kinds per delivery, and the mean latency of delivery."""

    packets: float
    latency: float


def traffic(nodes: int, workload: str, propagation: str, aggregation: str, seeds: int = 5) -> Traffic:
    """Everybody subscribes and publishes within 500 u.t.; the mean over seeds."""
    found = []
    for seed in range(1, seeds + 1):
        config = SimConfig(
            "cubecast",
            nodes=nodes,
            publishers="100%",
            messages=3,
            window=500.0,
            workload=workload,
            propagation=propagation,
            seed=seed,
            settings={"aggregation": aggregation, "retry": "1000000.0"},
        )
        figures = prepare(config).run()
        found.append((figures["packets"] / figures["deliveries"], figures["delivery_latency"]["mean"]))
    return Traffic(*(sum(column) / seeds for column in zip(*found, strict=True)))


class Lockstep:
    """Machines joined by perfect links and no clock, for long runs."""

    def __init__(self, nodes: int, **settings: Any) -> None:
        everybody = (1 << nodes) - 1
        parameters = Parameters(dimension_of(nodes), founders=everybody, ids=everybody, **settings)
        self.machines = [Cubecast(node, parameters, initial={"t": everybody}) for node in range(nodes)]
        self.deliveries = 0
        self.largest = 0
        """Bytes of the largest publication packet, payloads excluded."""
        self._packets: deque[tuple[int, int, Any]] = deque()

    def publish(self, node: int, payloads: Sequence[bytes]) -> None:
        self._apply(node, self.machines[node].publish(0.0, "t", payloads))
        while self._packets:
            sender, receiver, packet = self._packets.popleft()
            self._apply(receiver, self.machines[receiver].on_packet(0.0, sender, packet))

    def sizes(self) -> list[int]:
        """Bytes of every node's whole state."""
        return [len(pickle.dumps(machine)) for machine in self.machines]

    def _apply(self, node: int, effects: Sequence[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                if effect.packet.publication:
                    size = len(encode(effect.packet)) - sum(map(len, effect.packet.payloads))
                    self.largest = max(self.largest, size)
                self._packets.extend((node, peer, effect.packet) for peer in effect.peers)
            elif type(effect).__name__ == "Deliver":
                self.deliveries += len(effect.payloads)


def state_over_time(nodes: int, publications: int, batch: int, looks: int) -> Iterator[tuple[int, int]]:
    """(messages so far, bytes of the largest node) at equal distances."""
    world = Lockstep(nodes)
    for count in range(1, publications + 1):
        world.publish(count % nodes, [b"x"] * batch)
        if count % (publications // looks) == 0:
            yield count * batch, max(world.sizes())


def join_latency(protocol: str, nodes: int) -> float:
    """From `subscribe` to the first delivery, one publication every 10 u.t., constant delay of 100 per hop."""
    joiner = nodes - 1
    members = tuple(range(nodes - 1))
    publications = [Action(10.0 * k, "publish", 0, "t") for k in range(200)]
    actions = tuple(sorted([*publications, Action(500.0, "subscribe", joiner, "t")]))
    settings = {"window": "1000", "max_batch": "1", "retry": "100000.0"} if protocol == "cubecast" else {}
    schedule = Schedule(
        protocol, 1, nodes, tuple(range(nodes)), {"t": members}, settings, "constant:100", True, actions, (), ()
    )
    events = run(schedule, careful=False).events
    return min(event.time for event in events if event.kind == "deliver" and event.node == joiner) - 500.0


@dataclass
class Unavailability:
    """After the crash of one node of many that all publish, in test rounds."""

    detected: float
    """Until every survivor holds it faulty."""
    delivering: float
    """Until no survivor waits longer than twice the usual for anything a survivor published."""
    stable: float
    """Until the same is true of what publishers wait for: that everybody has it."""


def unavailability(nodes: int, victim: int, *, rounds_of_patience: int = 4, seed: int = 1) -> Unavailability:
    """Everybody publishes every 100 u.t., a hop takes 110 at most; VCube's testing rounds detect the crash."""
    length, crash_at, end = 500.0, 3000.0, 12_000
    actions = [Action(float(at), "publish", node, "t") for at in range(0, end, 100) for node in range(nodes)]
    settings = {
        "detection": "diagnosis",
        "round_length": str(length),
        "patience": str(length * rounds_of_patience),
        "retry": "1000.0",
        "window": "64",
    }
    everybody = tuple(range(nodes))
    fault = (Crash(victim, crash_at),)
    schedule = Schedule(
        *("cubecast", seed, nodes, everybody, {"t": everybody}, settings, "uniform:50:100", False),
        *(tuple(actions), fault, ()),
        detection_delay=1e9,
        heal_at=float(end),
    )
    events = [event for event in run(schedule, careful=False).events if event.node != victim]
    published = {(e.source, e.counter): e.time for e in events if e.kind == "publish"}
    detected: dict[int, float] = {}
    for event in events:
        if event.kind == "suspect" and event.peer == victim:
            detected.setdefault(event.node, event.time)
    ends = [max(detected.values())]
    for kind in ("deliver", "acknowledged"):
        waits = [(e.time, e.time - published[e.source, e.counter]) for e in events if _is(e, kind, published)]
        ends.append(_last_slow(waits, crash_at))
    return Unavailability(*((time - crash_at) / length for time in ends))


def _is(event: Any, kind: str, published: dict[tuple[int, int], float]) -> bool:
    return event.kind == kind and (event.source, event.counter) in published


def _last_slow(waits: list[tuple[float, float]], crash_at: float) -> float:
    """When the last wait ended that was more than twice as long as any before the crash."""
    usual = max(wait for at, wait in waits if at < crash_at)
    return max((at for at, wait in waits if wait > 2 * usual and at >= crash_at), default=crash_at)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--messages", type=int, default=128)
    options = parser.parse_args(arguments)
    for fifo_links in (True, False):
        slow, fast = (throughput(options.nodes, options.messages, w, fifo_links=fifo_links) for w in (1, 64))
        ratio = slow.time_per_message / fast.time_per_message
        print(f"{'FIFO' if fifo_links else 'non-FIFO'} links: window 64 is {ratio:.1f} times window 1; {fast}")
    for workload, about in (("uniform", "three messages each"), ("respond:4:200", "answers to the first four")):
        for propagation in ("constant:100", "normal:100:25", "uniform:10:200", "planetlab"):
            off, on = (traffic(64, workload, propagation, aggregation) for aggregation in ("off", "on"))
            saved = 100 - 100 * on.packets / off.packets
            print(
                f"{about}, {propagation}: {off.packets:.2f} packets per delivery after {off.latency:.0f} u.t.; "
                f"aggregated {on.packets:.2f} ({saved:.0f} % fewer) after {on.latency:.0f} u.t."
            )
    for messages, size in state_over_time(8, 2000, 50, 4):
        print(f"after {messages:,} messages the largest node keeps {size:,} bytes")
    for protocol in ("cubecast", "vcube-ps"):
        hops = join_latency(protocol, options.nodes) / HOP
        print(f"{protocol}: a newcomer of {options.nodes} delivers {hops:.1f} hops after it subscribed")
    for victim in (options.nodes - 1, options.nodes // 2):
        print(f"after the crash of node {victim}, in test rounds: {unavailability(options.nodes, victim)}")


if __name__ == "__main__":
    main()
