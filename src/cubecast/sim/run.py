"""From a configuration to a finished run."""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from cubecast import __version__
from cubecast.ids import NodeId
from cubecast.protocol.families import find
from cubecast.protocol.family import Family
from cubecast.sim import churn, fault_injection, workload
from cubecast.sim.config import SimConfig
from cubecast.sim.delays import parse_delay
from cubecast.sim.faults import parse_faults
from cubecast.sim.network import Network
from cubecast.sim.randomness import stream
from cubecast.sim.recorder import Recorder
from cubecast.sim.scenario import machines
from cubecast.sim.statistics import report
from cubecast.sim.world import World
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.writer import TraceWriter
from cubecast.wire.codec import codec_of


@dataclass
class Simulation:
    """A world ready to run, and what it was made from."""

    config: SimConfig
    protocol: Family
    world: World
    publishers: list[NodeId]

    def run(self) -> dict[str, Any]:
        """To the end; the figures of the run."""
        started = perf_counter()
        self.world.start()
        self.world.run()
        self.world.finish()
        seconds = perf_counter() - started
        world = self.world
        return {
            "protocol": self.protocol.name,
            "seed": self.config.seed,
            "nodes": self.config.nodes,
            "digest": world.statistics.digest(),
            **report(world.statistics, world.network),
            "simulated_time": world.now,
            "events": world.events,
            "wall_seconds": seconds,
            "events_per_second": world.events / seconds if seconds else 0.0,
        }


def prepare(config: SimConfig, recorder: Recorder | None = None, *, careful: bool = False) -> Simulation:
    """Build the world a configuration describes; nothing has happened in it yet."""
    family = find(config.protocol)
    kind = workload.parse_workload(config.workload)
    schedule = parse_faults(config.faults)
    nodes = list(range(config.nodes))
    topics = workload.Topics(config.topics, config.zipf, stream(config.seed, "topics"))
    members = _draw_members(config, nodes, topics.names)
    make = machines(family, config.seed, config.nodes, nodes, members, config.settings)
    delay = parse_delay(config.propagation, stream(config.seed, "network"), config.nodes)
    network = Network(
        config.nodes, delay, config.processing, config.transmission, config.fifo_links, config.queued_control
    )
    world = World(nodes, make, network, codec_of(family), recorder=recorder, coded=config.coded, careful=careful)
    for topic, some in members.items():
        for node in some:
            world.subscriptions[node].add(topic)
    publishers = _draw_publishers(config, members[topics.names[0]])
    workload.install(
        kind,
        world,
        publishers,
        topics,
        messages=config.messages,
        window=config.window,
        payload=bytes(config.payload_bytes),
        rng=stream(config.seed, "workload"),
    )
    fault_injection.install(schedule, world, stream(config.seed, "faults"), detection_delay=config.detection_delay)
    if config.churn_session is not None:
        for topic in topics.names:
            churn.install(world, topic, config.churn_session, config.window, stream(config.seed, "churn", topic))
    return Simulation(config, family, world, publishers)


def simulate(config: SimConfig) -> dict[str, Any]:
    """Run without a trace; the figures."""
    return prepare(config).run()


def simulate_to_memory(config: SimConfig, *, careful: bool = True) -> tuple[RunInfo, list[Event], dict[str, Any]]:
    """Run with the trace kept in memory, for checks of small runs."""
    events: list[Event] = []
    figures = prepare(config, Recorder(events), careful=careful).run()
    return run_info(config), events, figures


def simulate_to_directory(config: SimConfig, directory: Path, *, packets: bool = True) -> dict[str, Any]:
    """Run and write the trace; `packets` keeps the rows of sends and receptions."""
    with TraceWriter(directory, run_info(config)) as writer:
        return prepare(config, Recorder(writer, packets=packets)).run()


def run_info(config: SimConfig) -> RunInfo:
    return RunInfo(
        run=f"{config.protocol}-{config.nodes}-{config.seed}-{config.fingerprint()}",
        protocol=config.protocol,
        promises=find(config.protocol).promises,
        nodes=config.nodes,
        seed=config.seed,
        code_version=__version__,
        parameters=config.to_json(),
    )


def _draw_members(config: SimConfig, nodes: list[NodeId], topics: list[str]) -> dict[str, list[NodeId]]:
    rng = stream(config.seed, "members")
    count = config.count("subscribers", len(nodes))
    return {topic: sorted(rng.sample(nodes, count)) for topic in topics}


def _draw_publishers(config: SimConfig, members: list[NodeId]) -> list[NodeId]:
    """Publishers are drawn among the subscribers: that is what VCube-PS allows."""
    count = config.count("publishers", len(members))
    return sorted(stream(config.seed, "publishers").sample(members, count))
