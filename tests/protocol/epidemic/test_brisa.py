"""Streams to many: each message once, whatever breaks meanwhile; and the printed rules, which starve."""

import pytest

from cubecast.sim.recorder import Recorder
from cubecast.trace.schema import Kind
from support.stream_worlds import MESSAGES, add_faults, cycle, living, run_watching, stream


@pytest.mark.parametrize("seed", [1, 2])
def test_the_first_message_floods_and_each_further_one_costs_a_copy_per_process(seed: int):
    simulation = stream(seed, 64)
    cycled, starved = run_watching(simulation)
    assert not cycled and not starved
    flows = [flow for machine in simulation.world.machines.values() for flow in machine.flows.values()]
    copies = sum(flow.copies for flow in flows)
    flooded = sum(len(machine.overlay.active) for machine in simulation.world.machines.values())
    assert MESSAGES * 63 <= copies <= MESSAGES * 63 + 2 * flooded


@pytest.mark.parametrize(
    "settings", [{}, {"parents": "2"}, {"strategy": "delay-aware"}, {"strategy": "load-balancing"}]
)
def test_whoever_is_left_gets_everything_and_parents_never_form_a_cycle(settings: dict[str, str]):
    for seed in range(2):
        simulation = stream(seed, 40, **settings)
        add_faults(simulation, seed)
        cycled, starved = run_watching(simulation)
        assert not cycled and not starved, f"seed {seed}, {settings}"
        assert len(living(simulation.world)) < 40


@pytest.mark.slow
@pytest.mark.parametrize("parents", ["1", "2"])
def test_many_more_streams_heal(parents: str):
    for seed in range(100, 150):
        simulation = stream(seed, 48, parents=parents)
        add_faults(simulation, seed)
        assert run_watching(simulation) == (False, False), f"seed {seed}"


def test_the_printed_rules_adopt_in_circles_and_starve():
    cycles = starved = 0
    for seed in range(6):
        simulation = stream(seed, 40, rules="paper")
        add_faults(simulation, seed)
        cycled, hungry = run_watching(simulation)
        cycles += cycled
        starved += hungry
    assert cycles >= 3 and starved >= 1, f"{cycles} runs with cycles, {starved} with processes that starve"


def test_messages_of_one_publisher_arrive_in_order_and_gaps_are_told():
    """With room for four messages, some are gone for processes that were cut off: they are named, the rest in order."""
    rows: list = []
    simulation = stream(7, 24, buffer="4")
    world = simulation.world
    world.recorder = Recorder(rows, packets=False)
    add_faults(simulation, 7)
    run_watching(simulation)
    for node in living(world):
        told = [row for row in rows if row.node == node and row.kind in (Kind.DELIVER, Kind.GAP)]
        counters = [row.counter for row in told]
        assert counters == list(range(counters[0], counters[0] + len(counters))), node
        assert counters[-1] == MESSAGES


def test_an_overlay_keeps_to_its_limits_and_both_ends_agree():
    simulation = stream(3, 64, view="4", expansion="1.5")
    run_watching(simulation)
    machines = simulation.world.machines
    for node, machine in machines.items():
        assert 1 <= len(machine.overlay.active) <= 6
        assert all(node in machines[peer].overlay.active for peer in machine.overlay.active)


@pytest.mark.parametrize("settings", [{}, {"strategy": "delay-aware", "parents": "2"}])
def test_primary_parents_are_a_forest_after_every_single_step(settings: dict[str, str]):
    """Not only now and then: a cycle that lasts one step would show."""
    simulation = stream(4, 16, **settings)
    add_faults(simulation, 4)
    world = simulation.world
    world.start()
    before = -1
    while world.events != before:  # the horizon is reached when nothing is left to do before it
        before = world.events
        world.run(12_000.0, before + 1)
        assert cycle(world) is None, f"event {before}, {world.now}"
    assert world.events > 1000 and len(living(world)) < 16
