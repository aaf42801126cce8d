"""Accidents to processes and links, the network in user space where namespaces are allowed."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from bench.attack.rows import Row
from cubecast.errors import CubecastError
from cubecast.experiments.live_faults.cluster import ClusterConfig, LiveCluster, NotAtRest
from cubecast.experiments.live_faults.recorded import judge, load
from cubecast.experiments.live_faults.run import Accident, Fault, Happening, LiveSchedule

APPLICATION = "cubecast.experiments.live_faults.application"
MEMBERS = 5
RATE = 40.0
PATIENCE = 1.5
PEACE = 2.0
"""Seconds in which everybody hears everybody before anything happens."""
AFTERWARDS = 2.0
REST = 60.0


@dataclass(frozen=True)
class Accidents:
    name: str
    draw: Callable[[Random], list[Fault]]
    settings: dict[str, Any] = field(default_factory=dict)
    logs: bool = False


def _pairs(one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
    return list(product(one, other))


def kill(random: Random) -> list[Fault]:
    return [Fault(PEACE + at, Accident.KILL, node) for at, node in enumerate(random.sample(range(MEMBERS), 2))]


def restart(random: Random) -> list[Fault]:
    nodes = random.sample(range(MEMBERS), 3)
    return [
        Fault(PEACE + 2 * at, Accident.RESTART, node, seconds=random.uniform(0.1, 1)) for at, node in enumerate(nodes)
    ]


def pause(random: Random) -> list[Fault]:
    """Once shorter than the patience, once longer."""
    one, other = random.sample(range(MEMBERS), 2)
    return [
        Fault(PEACE, Accident.STOP, one, seconds=PATIENCE / 2),
        Fault(PEACE + 2, Accident.STOP, other, seconds=3 * PATIENCE),
    ]


def split(random: Random) -> list[Fault]:
    """Two against three, for longer than the patience."""
    few = random.sample(range(MEMBERS), 2)
    many = [node for node in range(MEMBERS) if node not in few]
    return [Fault(PEACE, Accident.STALL, one, other, 3 * PATIENCE) for one, other in _pairs(few, many)]


def short_split(random: Random) -> list[Fault]:
    few = random.sample(range(MEMBERS), 2)
    many = [node for node in range(MEMBERS) if node not in few]
    return [Fault(PEACE, Accident.STALL, one, other, PATIENCE / 2) for one, other in _pairs(few, many)]


def one_way(random: Random) -> list[Fault]:
    one, other, third = random.sample(range(MEMBERS), 3)
    return [
        Fault(PEACE, Accident.CUT, one, other, 3 * PATIENCE),
        Fault(PEACE + 1, Accident.CUT, third, one, PATIENCE / 2),
    ]


def flap(random: Random) -> list[Fault]:
    """A link that comes and goes, around the patience, and connections that break all the time."""
    one, other, third = random.sample(range(MEMBERS), 3)
    flaps = [Fault(PEACE + 1.2 * n, Accident.STALL, one, other, random.uniform(0.2, 1.1)) for n in range(6)]
    return [*flaps, Fault(PEACE, Accident.RESET, other, third, 6.0, amount=0.1)]


def slow(random: Random) -> list[Fault]:
    pairs = random.sample(_pairs(range(2), range(2, MEMBERS)), 4)
    return [Fault(PEACE, Accident.DELAY, *pair, 5.0, amount=random.uniform(0.05, 0.4)) for pair in pairs]


def damage(random: Random) -> list[Fault]:
    pairs = random.sample(_pairs(range(2), range(2, MEMBERS)), 3)
    return [Fault(PEACE, Accident.DAMAGE, *pair, 5.0, amount=0.05) for pair in pairs]


ALL = (
    Accidents("kill", kill),
    Accidents("kill and restart", restart),
    Accidents("pause", pause),
    Accidents("split, short", short_split),
    Accidents("split, long", split),
    Accidents("one-way cut", one_way),
    Accidents("flapping links", flap),
    Accidents("delay", slow),
    Accidents("bit flips on the wire", damage),
)


async def suffer(what: Accidents, seed: int, directory: Path) -> Row:
    random = Random(seed)
    schedule = LiveSchedule(seed, MEMBERS, tuple(sorted(what.draw(random), key=lambda one: one.at)), RATE)
    config = ClusterConfig(
        members=MEMBERS,
        seed=seed,
        directory=directory,
        topics=("talk.0", "talk.1"),
        module=APPLICATION,
        patience=PATIENCE,
        round_length=PATIENCE / 4,
        settings=what.settings,
        logs=what.logs,
    )
    row = Row(what.name, counts=f"{len(schedule.faults)} accidents")
    try:
        async with LiveCluster(config) as cluster:
            await cluster.publish(RATE)
            await Happening(cluster, schedule, asyncio.get_running_loop().time()).everything()
            await asyncio.sleep(AFTERWARDS)
            await settled(cluster, row)
    except (CubecastError, ExceptionGroup) as error:
        row.fault(f"it did not get to the end: {error!r:.300}")
    row.findings = judge(load(config.records))
    return row


async def settled(cluster: LiveCluster, row: Row, rest: float = REST) -> None:
    """Heal everything; when all is at rest the applications write that they lived to see it."""
    try:
        await cluster.drain(rest)
    except NotAtRest as error:
        row.fault(f"not at rest: {error!s:.300}")
    for member in cluster.living:
        await member.ask("end")
    row.counts += f", incarnations {[status['incarnation'] for status in (await cluster.statuses()).values()]}"
