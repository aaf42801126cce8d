"""What befalls a drawn world, and what its applications ask: before, during and after the faults, on all topics."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from cubecast.ids import NodeId, Topic
from cubecast.protocol.family import Nemesis
from cubecast.protocol.masks import ids_of, mask_of
from cubecast.sim.faults import (
    Break,
    ClockJump,
    Crash,
    Cutoff,
    Detour,
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
    nodes_of,
)
from cubecast.sim.schedule import SEVERAL, Action, Suspicion

# Which faults befall a drawn world. Of those a family takes, several, and one kind more than once.
#
# Follows decision 0046.

CRASHES = ("crash", "cutoff", "half")


def draw_faults(
    rng: Random, nodes: tuple[NodeId, ...], nemesis: Nemesis, phase: float
) -> tuple[tuple[Fault, ...], tuple[Suspicion, ...]]:
    """A dense world has up to seven kinds, each up to three times; mostly one of them is a crash or a restart."""
    faults: list[Fault] = []
    suspicions: list[Suspicion] = []
    down: set[NodeId] = set()
    most = 7 if nemesis.full else 5
    kinds = rng.sample(nemesis.faults, rng.randint(1, min(most, len(nemesis.faults))))
    ends = [kind for kind in nemesis.faults if kind in (*CRASHES, "restart")]
    if nemesis.full and not set(kinds) & set(ends) and rng.random() < 0.6:
        kinds.append(rng.choice(ends))
    for kind in kinds:
        repeats = (1, 1, 2, 3) if nemesis.full or kind in CRASHES else (1,)
        for _ in range(rng.choice(repeats)):
            at = round(rng.uniform(0, phase), 1)
            if kind == "suspicion":
                node, peer = rng.sample(nodes, 2)
                suspicions.append(Suspicion(at, node, peer))
            else:
                faults += _fault(rng, kind, nemesis, nodes, down, at, suspicions)
    return tuple(faults), tuple(suspicions)


def _fault(
    rng: Random,
    kind: str,
    nemesis: Nemesis,
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
            return [Hold(rng.choice(nemesis.held), rng.choice((100.0, 400.0, 1500.0)), at, until)]
        case "flicker":
            return [Flicker(node, rng.choice([one for one in nodes if one != node]), at)]
        case "break":
            return [Break(node, rng.choice([one for one in nodes if one != node]), at)]
        case "twosteps" | "twice" | "late" | "jump":
            return [_inside(rng, kind, node, at, until)]
        case "pause":
            return [Pause(node, at, until)]
        case "suspect":
            return [Suspect(node, at, until)]
        case "isolation":
            return [_isolation(rng, node, nodes, at, until, suspicions)]
        case "partition" | "oneway":
            return _partition(rng, kind, nodes, at, until, suspicions)
        case "detour":
            left, right = _halves(rng, nodes)
            return [Detour(mask_of(left), mask_of(right), rng.choice((200.0, 900.0)), at, until)]
        case "slow":
            return [Slow(node, rng.choice((50.0, 400.0)), at, until)]
        case "loss" | "duplicate" | "resend":
            return [LinkTrouble(Trouble(kind), rng.choice((0.02, 0.1, 0.3, 0.5)), at, until)]
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
            once: list[Fault] = [Crash(node, at), Restart(node, until)]
            if rng.random() < 0.3:
                again = round(until + rng.uniform(100, 800), 1)
                once += [Crash(node, again), Restart(node, round(again + rng.uniform(50, 600), 1))]
            return once


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
    left, right = _halves(rng, nodes)
    if rng.random() < 0.3:
        right = right[: max(1, len(right) // 2)]
    share = rng.choice((0.0, 0.3, 1.0))
    for a in left:
        for b in right:
            for node, peer in ((a, b), (b, a)):
                if rng.random() < share:
                    suspicions.append(Suspicion(round(rng.uniform(at, until), 1), node, peer))
    return [Partition(mask_of(left), mask_of(right), kind == "oneway", at, until)]


def _isolation(
    rng: Random, node: NodeId, nodes: tuple[NodeId, ...], at: float, until: float, suspicions: list[Suspicion]
) -> Fault:
    """Nothing reaches a node nor leaves it; mostly both sides notice."""
    others = [one for one in nodes if one != node]
    pairs = [pair for peer in others for pair in ((node, peer), (peer, node)) if rng.random() < 0.8]
    suspicions += [Suspicion(round(at + rng.uniform(10, 300), 1), *pair) for pair in pairs]
    return Partition(1 << node, mask_of(others), False, at, until)


def tolerated(
    faults: tuple[Fault, ...],
    suspicions: tuple[Suspicion, ...],
    survives: Callable[[frozenset[NodeId]], bool],
) -> tuple[tuple[Fault, ...], tuple[Suspicion, ...]]:
    """Those that a family claims to survive together: one after the other, as long as it does."""
    faulty: frozenset[NodeId] = frozenset()
    kept = []
    for fault in faults:
        more = faulty | _faulty(fault)
        if survives(more):
            faulty = more
            kept.append(fault)
    doubts = []
    for one in suspicions:
        more = faulty if {one.node, one.peer} & faulty else faulty | {one.peer}
        if more == faulty or survives(more):
            faulty = more
            doubts.append(one)
    return tuple(kept), tuple(doubts)


def _faulty(fault: Fault) -> set[NodeId]:
    """The nodes that crash, are cut off or are suspected."""
    match fault:
        case Slow() | LinkTrouble() | Detour() | Hold() | LateTimers() | TimersTwice() | ClockJump() | TwoSteps():
            return set()
        case Partition(left):
            return set(ids_of(left))
        case _:
            return set(ids_of(nodes_of(fault)))


def _halves(rng: Random, nodes: tuple[NodeId, ...]) -> tuple[list[NodeId], list[NodeId]]:
    shuffled = rng.sample(nodes, len(nodes))
    middle = rng.randint(1, len(nodes) - 1)
    return shuffled[:middle], shuffled[middle:]


# What the applications of a drawn world ask: before, during and after the faults, on all topics.

BATCHES = (*[1] * 20, *[3] * 6, 20)
PAYLOADS = (*[0] * 8, 40, 300, 3000)
"""Bytes each message has besides its number: small ones, and such as make packets too large to share."""
INTERESTS = 0.25


def draw_actions(
    rng: Random,
    nodes: tuple[NodeId, ...],
    members: Mapping[Topic, tuple[NodeId, ...]],
    nemesis: Nemesis,
    phase: float,
    heal_at: float,
) -> list[Action]:
    actions: list[Action] = []
    topics = tuple(members)
    last = heal_at + 1500 if nemesis.full else phase
    burst = rng.random() < 0.3
    for _ in range(rng.randint(8, 50) if nemesis.full else rng.randint(2, 16)):
        topic = rng.choice(topics)
        node = rng.choice(nodes if nemesis.outsiders and rng.random() < 0.3 else members[topic])
        at = rng.uniform(0, 200) if burst and rng.random() < 0.6 else rng.uniform(0, last)
        actions.append(_publish(rng, at, node, topic, nemesis))
    if nemesis.crossposts and len(topics) > 1:
        actions += _crossposts(rng, nodes, members, phase)
    if nemesis.joins:
        actions += _comings_and_goings(rng, nodes, topics, nemesis, phase)
    if nemesis.full and rng.random() < INTERESTS:
        actions += _interests(rng, nodes, phase)
    return actions


def returns(rng: Random, faults: Sequence[Fault], topics: tuple[Topic, ...]) -> list[Action]:
    """A process that comes back subscribes and publishes, mostly."""
    actions = []
    for fault in faults:
        if isinstance(fault, Restart) and rng.random() < 0.9:
            for topic in rng.sample(topics, rng.randint(1, len(topics))):
                at = fault.at + rng.choice((0.1, rng.uniform(0, 300)))
                actions.append(Action(round(at, 1), "subscribe", fault.node, topic))
                times = [round(at + rng.uniform(0, 1200), 1) for _ in range(rng.randint(0, 3))]
                actions += [Action(time, "publish", fault.node, topic) for time in times]
    return actions


def _publish(rng: Random, at: float, node: NodeId, topic: Topic, nemesis: Nemesis) -> Action:
    size = rng.choice(PAYLOADS) if nemesis.full else 0
    return Action(round(at, 1), "publish", node, topic, rng.choice(BATCHES), size)


def _crossposts(
    rng: Random, nodes: tuple[NodeId, ...], members: Mapping[Topic, tuple[NodeId, ...]], phase: float
) -> list[Action]:
    """Mostly of nodes that subscribe to all these topics; others are refused."""
    actions = []
    for _ in range(rng.randint(4, 16)):
        topics = rng.sample(tuple(members), rng.randint(2, len(members)))
        able = sorted(set(nodes).intersection(*(members[topic] for topic in topics)))
        node = rng.choice(able if able and rng.random() < 0.9 else nodes)
        at = round(rng.uniform(0, phase), 1)
        actions.append(Action(at, "crosspost", node, SEVERAL.join(topics), rng.choice(BATCHES)))
    return actions


def _comings_and_goings(
    rng: Random, nodes: tuple[NodeId, ...], topics: tuple[Topic, ...], nemesis: Nemesis, phase: float
) -> list[Action]:
    actions = []
    for _ in range(rng.randint(0, 10 if nemesis.full else 6)):
        node, topic = rng.choice(nodes), rng.choice(topics)
        at = rng.uniform(0, phase)
        kinds = ("unsubscribe", "subscribe") if rng.random() < 0.5 else ("subscribe", "unsubscribe")
        actions.append(Action(round(at, 1), kinds[0], node, topic))
        if rng.random() < 0.6:
            actions.append(Action(round(at + rng.choice((0, 50, 500)) + 0.1, 1), kinds[1], node, topic))
        if rng.random() < 0.5:
            later = rng.choice((0.2, rng.uniform(0, 600)))
            actions.append(Action(round(at + later, 1), "publish", node, topic))
    return actions


def _interests(rng: Random, nodes: tuple[NodeId, ...], phase: float) -> list[Action]:
    actions = []
    for node in rng.sample(nodes, rng.randint(1, min(3, len(nodes)))):
        at = rng.uniform(0, phase / 2)
        actions.append(Action(round(at, 1), "follow", node, rng.choice(("n*", "*"))))
        if rng.random() < 0.3:
            actions.append(Action(round(at + rng.uniform(0, 1000), 1), "unfollow", node, "*"))
    for _ in range(rng.randint(1, 8)):
        at, topic = rng.uniform(0, phase), f"n{rng.randint(1, 4)}"
        actions.append(Action(round(at, 1), "publish", rng.choice(nodes), topic))
    return actions
