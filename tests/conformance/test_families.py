"""What every family owes to those who drive it: the same tests over the registry and every role."""

import json
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from random import Random
from types import FunctionType, MethodType

import pytest

from cubecast.errors import BadInput, LocalProtocolError, RemoteProtocolError
from cubecast.experiments.swarm import swarm
from cubecast.ids import MessageId
from cubecast.protocol.effects import Link, Send, Unlink
from cubecast.protocol.families import FAMILIES, find
from cubecast.protocol.inputs import (
    Crosspost,
    Follow,
    Leave,
    PeerDown,
    PeerUp,
    Publish,
    Start,
    Subscribe,
    Unsubscribe,
)
from cubecast.protocol.inspector import topic_told
from cubecast.sim.config import SimConfig
from cubecast.sim.run import prepare, simulate
from cubecast.sim.scenario import machines
from cubecast.wire.codec import codec_of
from support.packets_by_type import frame, packet

TOY = "conformance.test_toy_family:FLOOD"
NAMES = [*FAMILIES, TOY]
SEATS = [(name, role) for name in NAMES for role in find(name).population.roles or ("",)]
EACH = pytest.mark.parametrize("name", NAMES)
EACH_ROLE = pytest.mark.parametrize(("name", "role"), SEATS)
NODES = 8
SETTINGS = {"srpt-b": {"brokers": "3"}}
OPTIONS = {"gryphon": {"publishers": "100%", "publishers_from": "all"}}  # only its root may

REQUESTS = {
    Publish: Publish("t", (b"a", b"b")),
    Crosspost: Crosspost(("t",), (b"a",)),
    Subscribe: Subscribe("new"),
    Unsubscribe: Unsubscribe("t"),
    Follow: Follow(lambda topic: topic.startswith("n")),
}
OPPOSITES = {Subscribe: Unsubscribe("new"), Unsubscribe: Subscribe("t"), Follow: Follow(None)}


def config(name: str, **options) -> SimConfig:
    rests = find(name).rests(find(name).chosen(SETTINGS.get(name, {})))
    horizon = {} if rests else {"until": 20_000.0}
    return SimConfig(name, nodes=NODES, settings=SETTINGS.get(name, {}), **(horizon | options | OPTIONS.get(name, {})))


def fresh(name: str, role: str, node: int = 3):
    """A machine that knows of seven others and is subscribed to t, as all are."""
    settled = {"t": tuple(range(NODES))}
    roles = dict.fromkeys(range(NODES), role)
    contacts = {node: (0, 1)}
    make = machines(find(name), 1, NODES, range(NODES), settled, SETTINGS.get(name, {}), roles=roles, contacts=contacts)
    machine = make(node, 0)
    look_at(machine, machine.handle(0.0, Start()))
    if not find(name).settles:
        with suppress(LocalProtocolError):  # others may, in its place
            look_at(machine, machine.handle(0.0, Subscribe("t")))
    return machine


def look_at(machine, effects):
    """After every step: invariants hold, there is something to say about it, and only others are spoken to."""
    machine.invariants()
    assert all(isinstance(line, str) for line in machine.waiting())
    for effect in effects:
        named = effect.peers if isinstance(effect, Send) else [effect.peer] if isinstance(effect, Link | Unlink) else []
        assert all(0 <= peer < NODES and peer != machine.node for peer in named), effect
    return effects


def busy(name: str, role: str, node: int = 3):
    """In the middle of things: others published, a peer went and came, own messages are under way."""
    machine, other = fresh(name, role, node), 0 if node else 1
    peer = fresh(name, role, other)
    with suppress(LocalProtocolError):
        for effect in peer.handle(1.0, Publish("t", (b"x",))):
            if isinstance(effect, Send) and node in effect.peers:
                look_at(machine, machine.on_packet(2.0, other, effect.packet))
    for given in (Publish("t", (b"c",)), PeerDown(5), PeerUp(5)):
        with suppress(LocalProtocolError):
            look_at(machine, machine.handle(3.0, given))
    return machine


def able(name: str, role: str, make, given):
    """A machine that did what was asked of it: in some families not every place may."""
    for node in (3, 7, 0):
        machine = make(name, role, node)
        try:
            return machine, look_at(machine, machine.handle(10.0, given))
        except LocalProtocolError:
            look_at(machine, [])
    raise AssertionError(f"no place of {name} may {given}, although the family says so")


@EACH_ROLE
@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("make", [fresh, busy], ids=["fresh", "busy"])
def test_each_request_is_carried_out_or_refused_by_name(name: str, role: str, kind, make):
    if kind in find(name).requests:
        machine, _ = able(name, role, make, REQUESTS[kind])
        for given in (OPPOSITES.get(kind, REQUESTS[kind]), REQUESTS[kind]):
            with suppress(LocalProtocolError):  # the first is not finished: a protocol may want it to be
                look_at(machine, machine.handle(11.0, given))
            look_at(machine, [])
    else:
        machine = make(name, role)
        with pytest.raises(LocalProtocolError):
            machine.handle(10.0, REQUESTS[kind])
        look_at(machine, [])


@pytest.mark.parametrize(("name", "role"), [(name, role) for name, role in SEATS if find(name).live])
def test_who_waits_for_a_publication_may_say_so_where_nodes_are_live(name: str, role: str):
    machine = fresh(name, role)
    look_at(machine, machine.handle(10.0, Publish("t", (b"a",), hurry=True)))


@EACH_ROLE
def test_what_is_asked_twice_is_refused_and_nothing_changes(name: str, role: str):
    machine = fresh(name, role)
    for once, again in ((Subscribe, Subscribe("t")), (Unsubscribe, Unsubscribe("never"))):
        if once in find(name).requests:
            with pytest.raises(LocalProtocolError):
                machine.handle(10.0, again)
            look_at(machine, [])
    if Leave in find(name).requests:
        look_at(machine, machine.handle(20.0, Leave()))


@EACH
def test_every_packet_travels_and_comes_back_the_same(name: str):
    codec = codec_of(find(name))
    assert codec.packets
    for cls in codec.packets:
        for seed in range(30):
            one = packet(cls, codec.field_types(cls), Random(seed))
            again = codec.decode(codec.encode(one))
            assert again == one and type(again) is cls, f"seed {seed}"
            assert list(again.mentions()) == list(one.mentions())


@EACH_ROLE
def test_packets_of_any_values_are_handled_or_refused_and_break_nothing(name: str, role: str):
    """One error exists for what others send."""
    errors = (RemoteProtocolError,)
    codec, machine, refused, handled = codec_of(find(name)), busy(name, role), 0, 0
    for seed in range(60):
        for cls in codec.packets:
            for hostile in (False, True):
                rng = Random(f"{seed} {cls.__name__} {hostile}")
                data = frame(codec.tag(cls), codec.field_types(cls), rng, hostile=hostile)
                try:
                    machine.on_packet(20.0 + seed, rng.choice((0, 1, 2, 4)), codec.decode(data))
                    handled += 1
                except errors:
                    refused += 1
    print(f"{name}: {handled} handled, {refused} refused")
    assert handled or refused


@EACH
def test_a_run_ends_is_repeatable_and_the_same_through_the_wire(name: str):
    options = {"publishers": "50%", "messages": 3, "propagation": "uniform:10:200", "seed": 7}
    first, again, coded = (simulate(config(name, **options, coded=coded)) for coded in (False, False, True))
    assert first["rested"] and (first["deliveries"] > 0) is (Publish in find(name).requests)
    assert first["digest"] == again["digest"] == coded["digest"]


@EACH
def test_crash_restart_leaving_and_returning_end_too(name: str):
    """Whatever it promises then: nothing raises, and the run ends."""
    faults = "crash:3@150,restart:3@900,crash:5@400"
    survives = "crash" in find(name).nemesis.faults
    options = {"messages": 3, "detection_delay": 50.0, "seed": 5} | ({} if survives else {"until": 20_000.0})
    for what in ({"faults": faults}, {"churn_nodes": "25%/1000"}):
        prepare(config(name, **options, **what), careful=True).run()


@EACH
def test_parameters_are_checked_where_they_are_declared(name: str):
    family = find(name)
    for one in family.settings.values():
        assert one.parse(str(getattr(one.default, "value", one.default)).lower()) == one.default
        if one.least > float("-inf"):
            with pytest.raises(BadInput, match=one.name):
                one.parse(str(one.kind(one.least - 1)))
    with pytest.raises(BadInput, match="no parameter"):
        family.choose({"colour": "red"})


@EACH
def test_populations_it_cannot_have_are_refused(name: str):
    population = find(name).population
    for size in (0, population.least - 1, population.most + 1):
        with pytest.raises(BadInput):
            population.check(name, size)
    population.check(name, population.least)


@EACH_ROLE
@pytest.mark.parametrize("make", [fresh, busy], ids=["fresh", "busy"])
def test_what_it_tells_about_itself_never_fails(name: str, role: str, make):
    """Status, pages and judges ask this of any machine at any time, and send it as JSON."""
    machine = make(name, role)
    tells = find(name).inspect(machine)
    said = tells.describe(12.0, 5)
    assert {"active", "settled", "standings", "topics", "topics_in_all", "held", "waiting"} <= said.keys()
    overlay = tells.overlay()
    assert overlay.shape in ("cube", "tree", "graph")
    assert all(0 <= node < NODES for edge in overlay.edges for node in edge[:2])
    told = [said, overlay.to_json(100), tells.held(12.0), tells.waiting(), dict(tells.published()), list(tells.topics)]
    lines = tells.describe_topics(tells.some_topics(3))
    assert all(line.keys() == topic_told().keys() for line in (*lines.values(), *said["topics"].values()))
    assert said["topics_in_all"] >= len(said["topics"]) and said["topics_in_all"] == len(tells.topics)
    told += [
        lines,
        tells.living,
        tells.destinations("t"),
        tells.destinations(None),
    ]
    told += [{str(node): below for node, below in tells.tree(3, topic).items()} for topic in ("t", None)]
    assert json.loads(json.dumps(told)) is not None
    assert machine.node in tells.living
    assert all(one.topic and one.is_confirmed in (True, False) for one in tells.reached())
    assert tells.has_delivered("t", MessageId(0, 0, 99)) is False
    assert tells.parent("t", 0) in (None, *range(NODES)) and tells.reaches("t", 3) in (True, False)
    assert tells.outlook(0, "alive", connected=True, via=None)
    look_at(machine, [])


KEEPS = {"timer-bundling": "the printed rules forget no message"}
SMALL = {"brisa": "buffer", "tag": "buffer", "simple-gossip": "buffer"}
"""What is kept for others is bounded by a parameter, in other families by numbers that a short run does not reach."""


@pytest.mark.parametrize("name", [name for name in NAMES if Publish in find(name).requests and name not in KEEPS])
def test_what_a_machine_keeps_does_not_grow_with_history(name: str, monkeypatch):
    monkeypatch.setattr("cubecast.protocol.brokers.records.RECENT", 16)
    monkeypatch.setattr("cubecast.protocol.epidemic.dissemination.MOST_LATER", 8)
    sizes = []
    for messages in (20, 60):
        window = 400.0 * messages
        one = config(name, publishers="50%", messages=messages, window=window, seed=3)
        settings = one.settings | ({SMALL[name]: "8"} if name in SMALL else {})
        horizon = None if one.until is None else window + 20_000.0
        simulation = prepare(replace(one, settings=settings, until=horizon))
        simulation.run()
        sizes.append(max(map(objects_in, simulation.world.machines.values())))
    print(f"{name}: {sizes[0]} objects after 20 messages of each publisher, {sizes[1]} after 60")
    assert sizes[1] <= 1.2 * sizes[0] + 10


def objects_in(thing: object) -> int:
    """How many objects, and entries of containers, hang on it."""
    seen: set[int] = set()
    left, count = [thing], 0
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, str | bytes | int | float | type | FunctionType | MethodType | None):
            continue
        seen.add(id(one))
        count += 1
        if isinstance(one, Mapping):
            left += [*one.keys(), *one.values()]
            count += len(one)
        elif isinstance(one, list | tuple | set | frozenset | deque):
            left += one
            count += len(one)
        else:
            left += vars(one).values() if hasattr(one, "__dict__") else ()
            slots = (name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ()))
            left += [getattr(one, name) for name in slots if hasattr(one, name)]
    return count


SCHEDULES = 40


@EACH
def test_what_it_promises_holds_in_drawn_schedules(name: str):
    *_, tally = swarm(name, 1, SCHEDULES)
    assert tally.failure is None, tally.failure.replay
    assert (tally.deliveries > 0) is (Publish in find(name).requests)
    assert not tally.vacuous, f"promised and never put to the test: {tally.vacuous}"


@pytest.mark.slow
@EACH
def test_what_it_promises_holds_in_many_drawn_schedules(name: str):
    *_, tally = swarm(name, 1000, 300)
    assert tally.failure is None, tally.failure.replay
