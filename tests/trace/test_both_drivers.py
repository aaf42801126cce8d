"""One machine, two drivers: of the same inputs, a simulated world and a live node record the same, row by row."""

import asyncio
from copy import copy
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cubecast.ids import NodeId
from cubecast.net.links.turn import Turn
from cubecast.net.node.driver import INPUTS, Driver
from cubecast.net.node.tracing import Journal
from cubecast.protocol.families import find
from cubecast.sim.config import SimConfig
from cubecast.sim.recorder import Recorder
from cubecast.sim.run import Simulation, prepare
from cubecast.trace.event import Event
from cubecast.trace.journal import events, journals
from cubecast.trace.schema import Kind

NAMES = {kind: name for name, kind in INPUTS.items()}
Inputs = list[tuple[str, float, tuple[Any, ...]]]


class Kept:
    """Hands everything on to a machine, and keeps what it was given."""

    def __init__(self, machine: Any, inputs: Inputs) -> None:
        self._machine, self._inputs = machine, inputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Any:
        self._inputs.append(("packet", now, (sender, copy(packet))))
        return self._machine.on_packet(now, sender, packet)

    def handle(self, now: float, given: Any) -> Any:
        effects = self._machine.handle(now, given)
        arguments = tuple(getattr(given, one.name) for one in fields(given))
        self._inputs.append((NAMES[type(given)], now, arguments))
        return effects


class Nobody:
    """A listener that hears nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def simulated(config: SimConfig, node: NodeId, more: Any = None) -> tuple[Simulation, Inputs, list[Event]]:
    rows: list[Event] = []
    simulation, inputs = prepare(config, Recorder(rows)), []
    simulation.world.wrap(node, lambda machine: Kept(machine, inputs))
    if more is not None:
        more(simulation.world)
    simulation.run()
    return simulation, inputs, [row for row in rows if row.node == node]


async def live(simulation: Simulation, node: NodeId, inputs: Inputs, settled: list[str], place: Path) -> list[Event]:
    """The same inputs, given to a new machine of the same life by the driver of living nodes."""
    journal = Journal(place, node, 0, b"test", packets=True)
    journal.started(0.0)
    for topic in settled:
        journal._recording.settled(0.0, topic)
    machine = prepare(simulation.config).world.machines[node]
    family = find(simulation.config.protocol)
    driver = Driver(machine, family, Nobody(), lambda *_: None, Turn(), deferral_budget=0, journal=journal)
    for name, now, arguments in inputs:
        driver._input(name, now, *arguments)
    driver.stop()
    driver.journalling.end(at_rest=True)
    return list(events(node, journals(place)[node]))


def comparable(rows: list[Event]) -> list[Event]:
    """Without what only one of the drivers knows: the number of a packet, its hops, and suspicions of its own."""
    kept = [row for row in rows if not (row.kind == Kind.SUSPECT and row.peer is not None)]
    ended = [row for row in kept if row.kind not in (Kind.QUIESCENT, Kind.STOP)]
    return [row._replace(time=0.0, seq=place, packet=None, hops=None) for place, row in enumerate(ended)]


def with_filters(world: Any) -> None:
    world.at(5.0, world.unsubscribe, 1, "t")
    world.at(300.0, world.subscribe, 1, "t", "price >= 3 and region in ('eu', 'us')")
    for at, price in ((700.0, 2), (720.0, 4)):
        world.at(at, world.publish, 1, "t", (b"x",), {"price": price, "region": "eu"})


def with_a_break(world: Any) -> None:
    world.at(4000.0, lambda: world.break_link(1, min(world.links[1])))


def with_interests(world: Any) -> None:
    world.at(10.0, world.follow, 1, lambda topic: topic.startswith("n"))
    world.at(50.0, world.publish, 2, "n1", (b"x", b"y"))
    world.at(400.0, world.subscribe, 1, "n1")
    world.at(700.0, world.unsubscribe, 1, "n1")
    world.at(900.0, world.follow, 1, None)


SCRIPTS = {
    "cubecast": (SimConfig("cubecast", nodes=4, publishers="100%", messages=3), with_interests),
    "vcube-ps": (SimConfig("vcube-ps", nodes=4, publishers="100%", subscribers="75%", churn_session=300.0), None),
    "timer-bundling": (SimConfig("timer-bundling", nodes=8, publishers="100%"), None),
    "epto": (SimConfig("epto", nodes=8, publishers="100%", until=4000.0), None),
    "locaps": (SimConfig("locaps", nodes=6, publishers="50%", topics=2), with_filters),
    "brisa": (SimConfig("brisa", nodes=8, publishers="1", messages=5, window=9000.0, until=15_000.0), with_a_break),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_both_record_the_same_rows(name: str, tmp_path: Path):
    config, more = SCRIPTS[name]
    simulation, inputs, rows = simulated(config, 1, more)
    beginning = [row.topic for row in rows if row.kind == Kind.SUBSCRIBED and row.time == 0.0]
    settled = sorted({topic for topic in beginning if topic is not None}) if simulation.protocol.settles else []
    recorded = asyncio.run(live(simulation, 1, inputs, settled, tmp_path))
    assert comparable(recorded) == comparable(rows)
    kinds = {row.kind for row in rows}
    assert {Kind.SEND, Kind.RECEIVE} <= kinds


def test_the_scripts_tell_of_filters_attributes_views_and_interests():
    """Otherwise the comparison above proves less than it says."""
    _, _, rows = simulated(*SCRIPTS["locaps"][:1], 1, SCRIPTS["locaps"][1])
    assert [row.filter for row in rows if row.kind == Kind.SUBSCRIBE][-1] == "price >= 3 and region in ('eu', 'us')"
    assert {row.attributes for row in rows if row.kind == Kind.PUBLISH} >= {'{"price":2,"region":"eu"}'}
    _, _, rows = simulated(SCRIPTS["brisa"][0], 1, with_a_break)
    views = [set(row.peers) for row in rows if row.kind == Kind.VIEW and row.peers is not None]
    assert views and any(after < before for before, after in pairwise(views))
    _, _, rows = simulated(SCRIPTS["cubecast"][0], 1, with_interests)
    assert next(row.kind for row in rows if row.topic == "n1" and "subscribe" in row.kind) == Kind.SUBSCRIBE
    inside = [row.messages for row in rows if row.kind == Kind.RECEIVE and row.topic == "n1"]
    assert any(len(messages) == 2 for messages in inside)
