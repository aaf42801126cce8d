"""Swarm testing: every seed draws a world of its own: size, holes, parameters, what applications ask, links and faults.

A family that takes everything (`Nemesis.full`) gets dense worlds: load before, during and after every fault, faults of
one kind that repeat and overlap, processes that come back and take part again, and the settings of live nodes. Of a
family that claims less, only what it claims to survive is drawn.
"""

from functools import partial
from random import Random

from cubecast.ids import NodeId
from cubecast.protocol.families import find
from cubecast.protocol.family import Nemesis
from cubecast.sim.config import stream
from cubecast.sim.drawn import draw_actions, draw_faults, returns, tolerated
from cubecast.sim.faults import Suspect
from cubecast.sim.schedule import Schedule
from cubecast.sim.sequences import draw_settings, play

PHASE = 2000.0
"""Faults begin within it."""
HEAL_AT = 3500.0
SEQUENCE = 0.35
SIZES = (4, 8, 8, 8, 8, 16, 16, 16, 16, 32)
LINKS = ("constant:100", "normal:100:25", "uniform:10:200", "uniform:1:600", "planetlab")


def draw(protocol: str, seed: int, nemesis: Nemesis | None = None) -> Schedule:
    """The schedule of this seed."""
    rng = stream(seed, "swarm", protocol)
    family = find(protocol)
    nemesis = nemesis or family.nemesis
    size, nodes = _population(rng, nemesis)
    topics = ("t", "u", "v", "w")[: rng.choice(_numbers_of_topics(nemesis))]
    members = {topic: _members(rng, nemesis, nodes) for topic in topics}
    faults, suspicions = draw_faults(rng, nodes, nemesis, PHASE)
    settings = _settings(rng, nemesis)
    if any(isinstance(fault, Suspect) for fault in faults) and settings.get("detection") == "diagnosis":
        settings["detection"] = "driver"
    faults, suspicions = tolerated(faults, suspicions, partial(nemesis.survives, nodes, settings))
    actions = draw_actions(rng, nodes, members, nemesis, PHASE, HEAL_AT)
    if nemesis.full or nemesis.returning:
        actions += returns(rng, faults, topics)
    schedule = Schedule(
        protocol,
        seed,
        size,
        nodes,
        members,
        settings,
        rng.choice(LINKS),
        rng.random() < 0.3,
        tuple(sorted(actions)),
        faults,
        suspicions,
        reactions=rng.choice((0, 5, 15)),
        detection_delay=_detection_delay(rng, settings),
        heal_at=HEAL_AT,
        coded=rng.random() < 0.1,
        epilogue=2 if nemesis.full else 0,
    )
    if nemesis.full and rng.random() < SEQUENCE:
        schedule = play(rng, schedule, nemesis)
    return schedule


def _numbers_of_topics(nemesis: Nemesis) -> tuple[int, ...]:
    if nemesis.crossposts:
        return 1, 2, 2, 3
    return (1, 1, 1, 2, 2, 4) if nemesis.full else (1, 1, 1, 2)


def _population(rng: Random, nemesis: Nemesis) -> tuple[int, tuple[NodeId, ...]]:
    size = rng.choice(SIZES if nemesis.full else (4, 4, 4, 8, 8, 8, 16))
    if nemesis.everybody:
        return size, tuple(range(size))
    most = rng.choice((min(size, 12), size)) if nemesis.full else min(size, 12)
    return size, tuple(sorted(rng.sample(range(size), rng.randint(min(3, size), most))))


def _members(rng: Random, nemesis: Nemesis, nodes: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    if nemesis.everybody:
        return nodes
    return tuple(sorted(rng.sample(nodes, rng.randint(1, len(nodes)))))


def _settings(rng: Random, nemesis: Nemesis) -> dict[str, str]:
    if not nemesis.full:
        return {name: rng.choice(values) for name, values in nemesis.settings.items()}
    return draw_settings(rng, nemesis.live if rng.random() < 0.35 else nemesis.settings)


def _detection_delay(rng: Random, settings: dict[str, str]) -> float | None:
    """Where nodes test each other, mostly nobody else reports a crash."""
    if settings.get("detection") == "diagnosis" and rng.random() < 0.7:
        return None
    return rng.choice((10.0, 300.0, 1500.0))
