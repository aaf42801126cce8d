"""What the applications of a drawn world ask: before, during and after the faults, on all topics."""

from collections.abc import Mapping, Sequence
from random import Random

from cubecast.ids import NodeId, Topic
from cubecast.protocol.family import Nemesis
from cubecast.sim.faults import Fault, Restart
from cubecast.sim.schedule import SEVERAL, Action

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
