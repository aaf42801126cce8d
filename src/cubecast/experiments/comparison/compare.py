"""All systems under all conditions on one workload, and the table that comes of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from cubecast import __version__
from cubecast.check.checker import check_trace
from cubecast.errors import BadInput
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.experiments.reproduction import Effort
from cubecast.ids import MessageId, NodeId
from cubecast.protocol.families import find
from cubecast.protocol.family import Family
from cubecast.sim import fault_injection
from cubecast.sim.config import stream
from cubecast.sim.faults import parse_faults
from cubecast.sim.network import Network, parse_delay
from cubecast.sim.recorder import Recorder
from cubecast.sim.scenario import begin_subscribed, machines
from cubecast.sim.statistics import report, summary
from cubecast.sim.world import World
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.reader import Trace
from cubecast.trace.schema import Kind
from cubecast.wire.codec import codec_of

# One system under one condition: a topic that all but one process subscribe to, publishers among them, a late joiner.
#
# Times are milliseconds. Every publisher has published once before anything is counted, so that trees and overlays are
# there; what is counted are the load's own time and the time after it in which everything may still arrive. Packets of
# upkeep in that time count too: a system that is never at rest pays for it.

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


COMPARISON = "systems.comparison.json"
SYSTEMS: Mapping[str, Mapping[str, str]] = {
    "cubecast": {},
    "vcube-ps": {},
    "vcube-pb": {},
    "srpt": {},
    "locaps": {},
    "delta": {},
    "gryphon": {},
    "brisa": {},
    "simple-gossip": {},
    "epto": {},
}
"""With the settings of each; none means as declared."""
RUNS, QUICK_RUNS = 5, 1


@dataclass(frozen=True)
class Size:
    nodes: int
    publishers: int
    messages: int
    size: int


FULL = Size(nodes=64, publishers=16, messages=8, size=50)
QUICK = Size(nodes=16, publishers=4, messages=4, size=50)


def compare(effort: Effort, runner: Runner, systems: Sequence[str] = ()) -> dict[str, Any]:
    """Every system under every condition that fits it: the mean of its runs, and the range they lie in."""
    unknown = [name for name in systems if name not in SYSTEMS]
    if unknown:
        raise BadInput(f"{unknown[0]!r} is not compared; the systems are {', '.join(SYSTEMS)}")
    size = QUICK if effort.quick else FULL
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    cells = [
        (system, condition) for system in systems or SYSTEMS for condition in CONDITIONS if _fits(system, condition)
    ]
    points = [
        {"system": system, "condition": condition, "settings": dict(SYSTEMS[system]), "seed": effort.seed + number}
        | vars(size)
        for system, condition in cells
        for number in range(runs)
    ]
    figures = list(runner(run, points))
    rows = [
        {"system": system, "condition": condition, **_together(figures[place * runs : (place + 1) * runs])}
        for place, (system, condition) in enumerate(cells)
    ]
    return {"size": vars(size), "runs": runs, "seed": effort.seed, "rows": rows}


def _fits(system: str, condition: str) -> bool:
    """Where a system needs channels that keep what they carry, datagrams that get lost are not for it."""
    return condition != DATAGRAMS or not find(system).fifo


def _together(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means; what some run does not have (nobody was told that it joined) is nothing."""
    means: dict[str, Any] = {}
    for name in runs[0]:
        values = [one[name] for one in runs]
        known = None not in values
        means[name] = fmean(values) if known else None
        means[f"{name}_range"] = [min(values), max(values)] if known else None
    return means


def write_comparison(found: Mapping[str, Any], directory: Path) -> Path:
    """As a file that `cubecast report` finds."""
    path = directory / COMPARISON
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2) + "\n")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None
    return path
