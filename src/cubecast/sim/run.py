"""From a configuration to a finished run."""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from cubecast import __version__
from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.protocol.families import FAMILIES, find
from cubecast.protocol.family import Family
from cubecast.protocol.inputs import Crosspost
from cubecast.sim import fault_injection, workload
from cubecast.sim.config import SimConfig, stream
from cubecast.sim.faults import parse_faults
from cubecast.sim.network import Network, parse_delay
from cubecast.sim.recorder import Recorder
from cubecast.sim.scenario import Coming, Contacts, begin_subscribed, machines, parse_churn, parse_roles
from cubecast.sim.statistics import report
from cubecast.sim.windows import sets_timers
from cubecast.sim.workload import read_subscriptions
from cubecast.sim.world import World
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.writer import TraceWriter
from cubecast.wire.codec import codec_of

TOLD_WITHIN = 100.0
"""How soon everybody hears of who came or left, u.t., unless a detection delay is given."""
SLICE = 50_000.0
QUIET = 20
"""Slices in which nothing but upkeep happens, after which a protocol is held not to rest."""
STUCK = 60
"""The same while a node still waits for something, such as an answer of a node that crashed unnoticed."""


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
        rested = self._to_the_end()
        if rested:
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
            "rested": rested,
            "events": world.events,
            "wall_seconds": seconds,
            "events_per_second": world.events / seconds if seconds else 0.0,
        }

    def _to_the_end(self) -> bool:
        """Whether nothing was left to do. What a horizon cuts off in the middle leaves histories open."""
        config, world = self.config, self.world
        if config.until is not None:
            return world.run(config.until) or world.is_settled()
        if not any(map(sets_timers, world.machines.values())):
            return world.run()
        until, quiet, delivered, last = 0.0, 0, -1, -1.0
        while not world.run(until := until + SLICE):
            if world.now == last:
                continue  # nothing happened: a timer far ahead is no upkeep
            busy = world.statistics.deliveries != delivered or world.has_agenda()
            quiet, delivered, last = 0 if busy else quiet + 1, world.statistics.deliveries, world.now
            if quiet >= (QUIET if world.is_settled() else STUCK):
                raise BadInput(f"{config.protocol} does not come to rest; say with --until when the run ends")
        return True


def prepare(config: SimConfig, recorder: Recorder | None = None, *, careful: bool = False) -> Simulation:
    """Build the world a configuration describes; nothing has happened in it yet."""
    family = find(config.protocol)
    if config.until is None and not family.rests(family.chosen(config.settings)):
        raise BadInput(f"{config.protocol} does not come to rest with these parameters; say with --until when to end")
    if config.tags > 1 and Crosspost not in family.requests:
        able = ", ".join(name for name in FAMILIES if Crosspost in find(name).requests)
        raise BadInput(f"{config.protocol} publishes a message on one topic; on several do {able}")
    kind = workload.parse_workload(config.workload)
    schedule = parse_faults(config.faults)
    nodes = list(range(config.nodes))
    members, topics = _draw_members(config, nodes)
    first = nodes[:1] if config.join_window is not None else nodes
    contacts: Contacts = {}
    roles = parse_roles(family, config.roles, nodes)
    settled = members if config.join_window is None else dict[str, list[NodeId]]()
    is_open = config.join_window is not None or bool(config.churn_nodes)
    make = machines(
        family, config.seed, config.nodes, first, settled, config.settings,
        roles=roles, contacts=contacts, is_open=is_open,
    )  # fmt: skip
    delay = parse_delay(config.propagation, stream(config.seed, "network"), config.nodes)
    fifo = config.fifo_links or family.fifo
    costs = (config.processing, config.transmission, fifo, config.queued_control)
    network = Network(config.nodes, delay, *costs, reception=config.reception)
    absent = [node for node in nodes if node not in first]
    options: dict[str, Any] = {"recorder": recorder, "coded": config.coded, "careful": careful, "absent": absent}
    world = World(nodes, make, network, codec_of(family), **options)
    begin_subscribed(world, family, settled)
    publishers = _draw_publishers(config, members[topics.names[0]], nodes, roles)
    workload.install(
        kind,
        world,
        publishers,
        topics,
        messages=config.messages,
        window=config.window,
        payload=bytes(config.payload_bytes),
        rng=stream(config.seed, "workload"),
        tags=config.tags,
    )
    fault_injection.install(schedule, world, stream(config.seed, "faults"), detection_delay=config.detection_delay)
    _install_coming(config, family, world, contacts, members, absent)
    if config.churn_session is not None:
        for topic in topics.names:
            workload.replace_leavers(
                world, topic, config.churn_session, config.window, stream(config.seed, "churn", topic)
            )
    return Simulation(config, family, world, publishers)


def _install_coming(
    config: SimConfig,
    family: Family,
    world: World,
    contacts: Contacts,
    members: dict[str, list[NodeId]],
    absent: list[NodeId],
) -> None:
    rng = stream(config.seed, "coming")
    within = TOLD_WITHIN if config.detection_delay is None else config.detection_delay
    coming = Coming(world, family, contacts, rng, contacts_each=config.contacts, told_within=within)
    if config.join_window is not None:
        wishes = {node: [topic for topic, some in members.items() if node in some] for node in world.nodes}
        for topic in wishes[0]:
            world.at(0.0, world.subscribe, 0, topic)
        coming.gather(absent, config.join_window, wishes)
    if config.churn_nodes:
        coming.churn(*parse_churn(config.churn_nodes), config.window)


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
        promises=find(config.protocol).promised(static=config.is_static),
        measured=find(config.protocol).measured,
        nodes=config.nodes,
        seed=config.seed,
        code_version=__version__,
        parameters=config.to_json(),
    )


def _draw_members(config: SimConfig, nodes: list[NodeId]) -> tuple[dict[str, list[NodeId]], workload.Topics]:
    rng = stream(config.seed, "topics")
    if config.subscriptions:
        members = read_subscriptions(Path(config.subscriptions), len(nodes))
        return members, workload.Topics(len(members), config.zipf, rng, members)
    topics = workload.Topics(config.topics, config.zipf, rng)
    rng, count = stream(config.seed, "members"), config.count("subscribers", len(nodes))
    members = {topic: sorted(rng.sample(nodes, count)) for topic in topics.names}
    if config.tags > 1:  # only members publish
        topics = workload.Topics(config.topics, config.zipf, stream(config.seed, "topics"), members)
    return members, topics


def _draw_publishers(
    config: SimConfig, members: list[NodeId], nodes: list[NodeId], roles: dict[NodeId, str]
) -> list[NodeId]:
    """Drawn among the subscribers unless told otherwise: that is what VCube-PS allows."""
    match config.publishers_from:
        case "subscribers":
            among = members
        case "all":
            among = nodes
        case role:
            find(config.protocol).population.role(config.protocol, role)
            among = [node for node in nodes if roles.get(node) == role]
    count = config.count("publishers", len(among))
    return sorted(stream(config.seed, "publishers").sample(among, count))
