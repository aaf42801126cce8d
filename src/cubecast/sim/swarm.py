"""Swarm testing: every seed draws a world of its own (size, holes, parameters, workload, links, one to five faults)."""

from dataclasses import replace
from random import Random

from cubecast.ids import NodeId, Topic
from cubecast.protocol.families import find
from cubecast.protocol.family import Nemesis
from cubecast.protocol.vcube.topology import mask_of
from cubecast.sim.faults import (
    ClockJump,
    Crash,
    Cutoff,
    Fault,
    Flicker,
    Half,
    Hold,
    LateTimers,
    LinkTrouble,
    Partition,
    Pause,
    Restart,
    Slow,
    Suspect,
    TimersTwice,
    Trouble,
    TwoSteps,
)
from cubecast.sim.plots import PLOTS
from cubecast.sim.randomness import stream
from cubecast.sim.schedule import Action, Schedule, Suspicion

FAULT_PHASE = 2000.0
BATCHES = (*[1] * 20, *[3] * 6, 20)
INTERESTS = 0.1
PLOT = 0.1
HEAL_AT = 3500.0

CRASHES = ("crash", "cutoff", "half")


def draw(protocol: str, seed: int, profile: Nemesis | None = None) -> Schedule:
    """The schedule of this seed."""
    rng = stream(seed, "swarm", protocol)
    profile = profile or find(protocol).nemesis
    size = rng.choice((4, 4, 4, 8, 8, 8, 8, 16))
    nodes = tuple(sorted(rng.sample(range(size), rng.randint(min(3, size), min(size, 12)))))
    topics = ("t",) if rng.random() < 0.8 else ("t", "u")
    members = {topic: _members(rng, nodes) for topic in topics}
    if profile.everybody:
        nodes = tuple(range(size))
        members = dict.fromkeys(topics, nodes)
    faults, suspicions = _faults(rng, nodes, profile)
    schedule = Schedule(
        protocol,
        seed,
        size,
        nodes,
        members,
        _settings(rng, faults) | _later_settings(seed) if profile.full else _drawn(seed, profile),
        rng.choice(("constant:100", "normal:100:25", "uniform:10:200", "uniform:1:600", "planetlab")),
        rng.random() < 0.3,
        tuple(sorted(_actions(rng, nodes, members, profile))),
        faults,
        suspicions,
        reactions=rng.choice((0, 5, 15)),
        detection_delay=rng.choice((10.0, 300.0, 1500.0)),
        heal_at=HEAL_AT,
        coded=rng.random() < 0.1,
    )
    if profile.returning:
        schedule = replace(schedule, actions=tuple(sorted((*schedule.actions, *_returns(seed, schedule)))))
    return _embellish(rng, schedule) if profile.full else schedule


def _returns(seed: int, schedule: Schedule) -> list[Action]:
    """What nodes that come back do at once; from a generator of their own."""
    rng = Random(f"returns of {seed}")
    topics = tuple(schedule.members)
    actions = []
    for fault in schedule.faults:
        if isinstance(fault, Restart):
            at, topic = fault.at, rng.choice(topics)
            actions.append(Action(round(at + 0.1, 1), "subscribe", fault.node, topic))
            actions.append(Action(round(at + rng.choice((0.2, 50, 400)), 1), "publish", fault.node, topic))
    return actions


def _drawn(seed: int, profile: Nemesis) -> dict[str, str]:
    rng = Random(f"settings of {seed}")
    return {name: rng.choice(values) for name, values in profile.settings.items()}


def _embellish(rng: Random, schedule: Schedule) -> Schedule:
    """Now and then interests in topics to come, or a plot."""
    if rng.random() < INTERESTS:
        schedule = replace(schedule, actions=tuple(sorted((*schedule.actions, *_interests(rng, schedule.nodes)))))
    if rng.random() < PLOT:
        schedule = rng.choice(PLOTS)(rng, schedule)
    return schedule


def _interests(rng: Random, nodes: tuple[NodeId, ...]) -> list[Action]:
    actions = []
    for node in rng.sample(nodes, rng.randint(1, 2)):
        at = rng.uniform(0, FAULT_PHASE / 2)
        actions.append(Action(round(at, 1), "follow", node, rng.choice(("n*", "*"))))
        if rng.random() < 0.3:
            actions.append(Action(round(at + rng.uniform(0, 1000), 1), "unfollow", node, "*"))
    for _ in range(rng.randint(1, 6)):
        at, topic = rng.uniform(0, FAULT_PHASE), f"n{rng.randint(1, 3)}"
        actions.append(Action(round(at, 1), "publish", rng.choice(nodes), topic))
    return actions


def _members(rng: Random, nodes: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    return tuple(sorted(rng.sample(nodes, rng.randint(1, len(nodes)))))


def _settings(rng: Random, faults: tuple[Fault, ...]) -> dict[str, str]:
    settings = {
        "window": str(rng.choice((1, 2, 8, 64))),
        "max_batch": str(rng.choice((1, 2, 512))),
        "max_batch_bytes": str(rng.choice((1, 3, 65_536))),
        "retry": str(rng.choice((250.0, 500.0, 1000.0))),
        "aggregation": rng.choice(("off", "on")),
        "eager": str(rng.choice((0, 0, 1, 4))),
        "ack_delay": str(rng.choice((0.0, 0.0, 20.0, 200.0))),
        "patience": "1500.0",
        "round_length": "500.0",
    }
    if rng.random() < 0.08 and not any(isinstance(fault, Suspect) for fault in faults):
        settings["detection"] = "diagnosis"
    return settings


def _later_settings(seed: int) -> dict[str, str]:
    """From a generator of their own, so that everything else of a seed's world stays what it was without them."""
    rng = Random(f"later settings of {seed}")
    return {"direct": str(rng.choice((0, 0, 15))), "calm": str(rng.choice((0, 0, 6)))}


def _actions(
    rng: Random, nodes: tuple[NodeId, ...], members: dict[Topic, tuple[NodeId, ...]], profile: Nemesis
) -> list[Action]:
    actions = []
    topics = tuple(members)
    burst = rng.random() < 0.3
    for _ in range(rng.randint(2, 16)):
        topic = rng.choice(topics)
        node = rng.choice(nodes if profile.outsiders and rng.random() < 0.3 else members[topic])
        at = rng.uniform(0, 200 if burst else FAULT_PHASE)
        actions.append(Action(round(at, 1), "publish", node, topic, rng.choice(BATCHES)))
    for _ in range(rng.randint(0, 6) if profile.joins else 0):
        node, topic = rng.choice(nodes), rng.choice(topics)
        at = rng.uniform(0, FAULT_PHASE)
        kinds = ("unsubscribe", "subscribe") if rng.random() < 0.5 else ("subscribe", "unsubscribe")
        actions.append(Action(round(at, 1), kinds[0], node, topic))
        if rng.random() < 0.6:
            actions.append(Action(round(at + rng.choice((0, 50, 500)) + 0.1, 1), kinds[1], node, topic))
        if rng.random() < 0.5:
            later = rng.choice((0.2, rng.uniform(0, 600)))
            actions.append(Action(round(at + later, 1), "publish", node, topic))
    return actions


def _faults(
    rng: Random, nodes: tuple[NodeId, ...], profile: Nemesis
) -> tuple[tuple[Fault, ...], tuple[Suspicion, ...]]:
    faults: list[Fault] = []
    suspicions: list[Suspicion] = []
    down: set[NodeId] = set()
    for kind in rng.sample(profile.faults, rng.randint(1, min(5, len(profile.faults)))):
        for _ in range(rng.choice((1, 1, 2, 3)) if kind in CRASHES else 1):
            at = round(rng.uniform(0, FAULT_PHASE), 1)
            if kind == "suspicion":
                node, peer = rng.sample(nodes, 2)
                suspicions.append(Suspicion(at, node, peer))
            else:
                faults += _fault(rng, kind, profile, nodes, down, at, suspicions)
    return tuple(faults), tuple(suspicions)


def _fault(
    rng: Random,
    kind: str,
    profile: Nemesis,
    nodes: tuple[NodeId, ...],
    down: set[NodeId],
    at: float,
    suspicions: list[Suspicion],
) -> list[Fault]:
    until = round(at + rng.uniform(50, 1200), 1)
    node = rng.choice(nodes)
    match kind:
        case "crash" | "cutoff" | "half" | "restart":
            if node in down or 2 * len(down) >= len(nodes):
                return []
            down.add(node)
            return _end(rng, kind, node, at, until)
        case "hold":
            return [Hold(rng.choice(profile.held), rng.choice((100.0, 400.0, 1500.0)), at, until)]
        case "flicker":
            return [Flicker(node, rng.choice([one for one in nodes if one != node]), at)]
        case "twosteps" | "twice" | "late" | "jump":
            return [_inside(rng, kind, node, at, until)]
        case "pause":
            return [Pause(node, at, until)]
        case "suspect":
            return [Suspect(node, at, until)]
        case "partition" | "oneway":
            return _partition(rng, kind, nodes, at, until, suspicions)
        case "slow":
            return [Slow(node, rng.choice((50.0, 400.0)), at, until)]
        case "loss" | "duplicate" | "resend":
            return [LinkTrouble(Trouble(kind), rng.choice((0.02, 0.1, 0.3)), at, until)]
        case _:
            return [LinkTrouble(Trouble(kind), rng.choice((50.0, 400.0)), at, until)]


def _end(rng: Random, kind: str, node: NodeId, at: float, until: float) -> list[Fault]:
    match kind:
        case "cutoff":
            return [Cutoff(node, rng.choice((0, 1, 1, 2, 3)), at)]
        case "half":
            return [Half(node, at)]
        case "crash":
            return [Crash(node, at)]
        case _:
            return [Crash(node, at), Restart(node, until)]


def _inside(rng: Random, kind: str, node: NodeId, at: float, until: float) -> Fault:
    match kind:
        case "twosteps":
            return TwoSteps(node, at, until)
        case "twice":
            return TimersTwice(node, at, until)
        case "late":
            return LateTimers(node, rng.choice((100.0, 700.0)), at, until)
        case _:
            return ClockJump(node, rng.choice((-5000.0, -300.0, 300.0, 5000.0)), at)


def _partition(
    rng: Random, kind: str, nodes: tuple[NodeId, ...], at: float, until: float, suspicions: list[Suspicion]
) -> list[Fault]:
    """Some of the nodes that cannot talk to each other suspect each other."""
    shuffled = rng.sample(nodes, len(nodes))
    middle = rng.randint(1, len(nodes) - 1)
    left, right = shuffled[:middle], shuffled[middle:]
    if rng.random() < 0.3:
        right = right[: max(1, len(right) // 2)]
    share = rng.choice((0.0, 0.3, 1.0))
    for a in left:
        for b in right:
            for node, peer in ((a, b), (b, a)):
                if rng.random() < share:
                    suspicions.append(Suspicion(round(rng.uniform(at, until), 1), node, peer))
    return [Partition(mask_of(left), mask_of(right), kind == "oneway", at, until)]
