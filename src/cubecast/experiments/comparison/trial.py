"""One system under one condition: a topic that all but one process subscribe to, publishers among them, a late joiner.

Times are milliseconds. Every publisher has published once before anything is counted, so that trees and overlays are
there; what is counted are the load's own time and the time after it in which everything may still arrive. Packets of
upkeep in that time count too: a system that is never at rest pays for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cubecast import __version__
from cubecast.check.checker import check_trace
from cubecast.experiments.parallel import Figures, Point
from cubecast.ids import MessageId, NodeId
from cubecast.protocol.families import find
from cubecast.protocol.family import Family
from cubecast.sim import fault_injection
from cubecast.sim.delays import parse_delay
from cubecast.sim.faults import parse_faults
from cubecast.sim.network import Network
from cubecast.sim.randomness import stream
from cubecast.sim.recorder import Recorder
from cubecast.sim.scenario import begin_subscribed, machines
from cubecast.sim.statistics import report, summary
from cubecast.sim.world import World
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.reader import Trace
from cubecast.trace.schema import Kind
from cubecast.wire.codec import codec_of

TOPIC = "t"
HOPS = "uniform:5:15"
SETTLING, LOAD, AFTER = 2_000.0, 4_000.0, 6_000.0
TOLD_WITHIN = 300.0
"""How soon all are told of a crash, where the system itself does not notice it."""
RETRANSMISSION = 200.0
"""What a lost segment and all behind it wait under TCP: its least timeout."""
LOST = 0.01
QUIET, CHANNELS, DATAGRAMS, CRASH = "quiet", "1 % loss under TCP", "1 % of datagrams lost", "one crash"
CONDITIONS = (QUIET, CHANNELS, DATAGRAMS, CRASH)
ORDERS = ("P5", "P7", "P9b")
"""Per publisher, causal, total."""


@dataclass
class _Trial:
    """The world of one trial, who plays which part in it, and what it wrote down."""

    family: Family
    world: World
    rows: list[Event]
    members: Sequence[NodeId]
    publishers: Sequence[NodeId]
    newcomer: NodeId
    victim: NodeId


def run(point: Point) -> Figures:
    """`system`, `condition`, `nodes`, `publishers`, `messages`, `size`, `settings` and `seed` in, figures out."""
    trial = _prepare(point)
    world, network = trial.world, trial.world.network
    world.start()
    world.run(SETTLING)
    before = network.packets, network.bytes, network.messages
    world.run(SETTLING + LOAD + AFTER)
    packets, sent, copies = (
        now - then for now, then in zip((network.packets, network.bytes, network.messages), before, strict=True)
    )
    published = {_message(row): row.time for row in trial.rows if row.kind == Kind.PUBLISH and row.time >= SETTLING}
    staying = [node for node in trial.members if point["condition"] != CRASH or node != trial.victim]
    delivered = [
        row for row in trial.rows if row.kind == Kind.DELIVER and row.node in staying and _message(row) in published
    ]
    asked = point["publishers"] * point["messages"]
    latency = summary([row.time - published[_message(row)] for row in delivered if row.node != row.source])
    holding = report(world.statistics, network)["holding_time"]
    return {
        "complete": len(delivered) / (asked * len(staying)),
        "published": len(published) / asked,
        "p50": latency["p50"],
        "p99": latency["p99"],
        "packets": packets / len(delivered),
        "copies": copies / len(delivered),
        "bytes": sent / len(delivered),
        "metadata": (sent - copies * point["size"]) / len(delivered),
        "holding": holding["mean"],
        **_joining(trial, published),
        **_disorder(trial),
    }


def _prepare(point: Point) -> _Trial:
    family, size, seed = find(point["system"]), point["nodes"], point["seed"]
    nodes = range(size)
    members, newcomer, victim = nodes[:-1], nodes[-1], nodes[size // 3]
    rows: list[Event] = []
    make = machines(family, seed, size, nodes, {TOPIC: members}, point["settings"])
    delay = parse_delay(HOPS, stream(seed, "network"), size)
    fifo = family.fifo or point["condition"] == CHANNELS
    network = Network(size, delay, processing=0.1, transmission=0.1, fifo_links=fifo)
    world = World(nodes, make, network, codec_of(family), recorder=Recorder(rows, packets=False))
    begin_subscribed(world, family, {TOPIC: members})
    rng = stream(seed, "comparison")
    publishers = sorted(rng.sample([node for node in members if node != victim], point["publishers"]))
    payload = [bytes(point["size"])]
    for publisher in publishers:
        world.at(rng.uniform(SETTLING / 4, SETTLING / 2), world.publish, publisher, TOPIC, payload)
        for _ in range(point["messages"]):
            world.at(SETTLING + rng.uniform(0, LOAD), world.publish, publisher, TOPIC, payload)
    world.at(SETTLING + LOAD / 2, world.subscribe, newcomer, TOPIC)
    trial = _Trial(family, world, rows, members, publishers, newcomer, victim)
    _disturb(trial, point["condition"], seed)
    return trial


def _disturb(trial: _Trial, condition: str, seed: int) -> None:
    """Loss through the load; or a crash in its middle, of a subscriber that does not publish."""
    rng = stream(seed, "faults")
    if condition == CRASH:
        faults = parse_faults(f"crash:{trial.victim}@{SETTLING + LOAD / 2:g}")
        fault_injection.install(faults, trial.world, rng, detection_delay=TOLD_WITHIN)
    elif condition == CHANNELS:

        def late(now: float, source: NodeId, destination: NodeId, packet: Any) -> list[float]:
            lost = SETTLING <= now <= SETTLING + LOAD and rng.random() < LOST
            return [RETRANSMISSION if lost else 0.0]

        trial.world.network.fate = late
    elif condition == DATAGRAMS:
        faults = parse_faults(f"loss:{100 * LOST:g}%@{SETTLING:g}-{SETTLING + LOAD:g}")
        fault_injection.install(faults, trial.world, rng)


def _joining(trial: _Trial, published: dict[MessageId, float]) -> Figures:
    """How long the late subscriber waits to be told that it is in, and what of the time since it asked it never got."""
    asked = SETTLING + LOAD / 2
    its = [row for row in trial.rows if row.node == trial.newcomer]
    told = next((row.time - asked for row in its if row.kind == Kind.SUBSCRIBED), None)
    got = {_message(row) for row in its if row.kind == Kind.DELIVER}
    later = [message for message, when in published.items() if when > asked]
    return {"joined": told, "missed": sum(message not in got for message in later) / len(later) if later else None}


def _disorder(trial: _Trial) -> Figures:
    """Deliveries that came against each order, as the reference checker counts them."""
    info = RunInfo("comparison", trial.family.name, (), code_version=__version__)
    found = check_trace(Trace(info, trial.rows), list(ORDERS)).violations
    return {name: sum(violation.promise == name for violation in found) for name in ORDERS}


def _message(row: Event) -> MessageId:
    assert row.source is not None
    assert row.source_incarnation is not None
    assert row.counter is not None
    return MessageId(row.source, row.source_incarnation, row.counter)
