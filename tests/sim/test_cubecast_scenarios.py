"""The situations the protocol exists for, each over many link delays: promises hold and the world comes to rest."""

from dataclasses import replace

import pytest

from cubecast.experiments.swarm import judge
from cubecast.sim.faults import parse_faults
from cubecast.sim.schedule import Action, Schedule, Suspicion
from cubecast.sim.swarm_run import run

EIGHT = tuple(range(8))
SEEDS = range(12)


def world(seed, *, faults="", actions=(), suspicions=(), members=EIGHT, **changes):
    publications = tuple(Action(20.0 * k, "publish", k % 8, "t") for k in range(24))
    schedule = Schedule(
        "cubecast",
        seed,
        8,
        EIGHT,
        {"t": tuple(members)},
        {"retry": "500.0", "window": "8"},
        "uniform:10:300",
        False,
        tuple(sorted((*publications, *actions))),
        parse_faults(faults),
        tuple(suspicions),
        reactions=10,
    )
    return replace(schedule, **changes)


def holds(schedule):
    failure = judge(schedule)
    assert failure is None, (failure.kind, failure.reasons, failure.replay)


def deliveries(outcome, source, counter):
    return {
        event.node
        for event in outcome.events
        if event.kind == "deliver" and (event.source, event.counter) == (source, counter)
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_no_faults(seed):
    holds(world(seed))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sent", [0, 1, 2])
def test_the_publisher_dies_after_it_sent_to_so_many_children(seed, sent):
    schedule = world(seed, actions=[Action(300.0, "publish", 3, "t")], faults=f"cutoff:3:{sent}@300")
    holds(schedule)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_or_none_of_the_survivors_deliver_what_a_dying_publisher_sent_to_one_child(seed):
    schedule = replace(world(seed, faults="cutoff:3:1@300"), actions=(Action(300.0, "publish", 3, "t"),), reactions=0)
    survivors = set(EIGHT) - {3}
    assert deliveries(run(schedule), 3, 1) & survivors in (set(), survivors)
    holds(schedule)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_nodes_on_one_path_die(seed):
    holds(world(seed, faults="crash:4@150,cutoff:6:1@100"))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_suspicion_costs_a_restart_and_nothing_else(seed):
    schedule = world(seed, suspicions=[Suspicion(200.0, 1, 5)])
    holds(schedule)
    stopped = {event.node for event in run(schedule).events if event.kind == "stop"}
    assert stopped == {5}


@pytest.mark.parametrize("seed", SEEDS)
def test_everybody_suspects_a_living_node(seed):
    holds(world(seed, faults="suspect:2@150-700"))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", ["partition", "oneway"])
def test_halves_part_and_meet_again(seed, way):
    cross = [Suspicion(350.0 + 10 * a, a, b) for a in range(4) for b in range(4, 8)]
    cross += [Suspicion(350.0 + 10 * b, b, a) for a in range(4) for b in range(4, 8)]
    schedule = world(seed, faults=f"{way}:0+1+2+3|4+5+6+7@200-900", suspicions=cross)
    holds(schedule)
    ready = {event.node for event in run(schedule).events if event.kind == "quiescent"}
    assert ready == set(EIGHT)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_partition_nobody_noticed_loses_nothing(seed):
    schedule = world(seed, faults="partition:0+1+2+3|4+5+6+7@200-900")
    holds(schedule)
    assert not [event for event in run(schedule).events if event.kind in ("stop", "gap")]


@pytest.mark.parametrize("seed", SEEDS)
def test_restart_without_memory(seed):
    again = [Action(1500.0, "subscribe", 6, "t"), Action(2000.0, "publish", 6, "t")]
    holds(world(seed, faults="crash:6@150,restart:6@700", actions=again))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_paused_node_learns_of_its_removal_before_it_delivers(seed):
    holds(world(seed, faults="pause:2@100-1500", suspicions=[Suspicion(400.0, 0, 2)]))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_join_storm(seed):
    joins = [Action(10.0 * k, "subscribe", node, "t") for k, node in enumerate((1, 2, 4, 5, 6, 7))]
    leaves = [Action(300.0, "unsubscribe", 1, "t"), Action(310.0, "subscribe", 1, "t")]
    holds(world(seed, members=(0, 3), actions=[*joins, *leaves]))


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_and_duplication_are_repaired(seed):
    schedule = world(seed, faults="loss:30%@0-1500,duplicate:30%@0-1500")
    holds(schedule)
    assert not [event for event in run(schedule).events if event.kind in ("stop", "gap")]


@pytest.mark.parametrize("seed", SEEDS)
def test_diagnosis_finds_crashes_by_itself(seed):
    settings = {"retry": "500.0", "detection": "diagnosis", "round_length": "300.0", "patience": "1500.0"}
    schedule = world(seed, faults="crash:5@200", settings=settings, detection_delay=1e9)
    holds(schedule)
    first = {}
    for event in run(schedule).events:
        if event.kind == "suspect" and event.peer == 5:
            first.setdefault(event.node, event.time)
    assert first.keys() == set(EIGHT) - {5}
    assert max(first.values()) < 200 + 1500 + 3 * 300


def test_the_same_schedule_gives_the_same_history():
    schedule = world(1, faults="cutoff:3:1@300,loss:10%@0-900,partition:0+1|2+3@500-800")
    assert run(schedule).events == run(schedule).events


def test_the_wire_changes_nothing():
    schedule = world(1, faults="cutoff:3:1@300")
    assert run(schedule).events == run(replace(schedule, coded=True)).events


def test_a_schedule_survives_being_printed():
    schedule = world(1, faults="cutoff:3:1@300,loss:10%@0-900", suspicions=[Suspicion(200.0, 1, 5)])
    assert Schedule.from_text(schedule.to_text()) == schedule
