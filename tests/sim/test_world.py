"""The simulated world by hand: times, figures, limits, timers."""

from collections.abc import Hashable

import pytest

from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import CancelTimer, Effects, SetTimer
from cubecast.sim.config import SimConfig, stream
from cubecast.sim.network import Network, constant
from cubecast.sim.run import prepare, simulate, simulate_to_memory
from cubecast.sim.world import World
from cubecast.trace.schema import Kind
from cubecast.wire.codec import Codec

ONE = {"nodes": 8, "publishers": "1", "messages": 1, "propagation": "constant:100"}


def test_latencies_of_one_publication_are_those_of_the_tree():
    """t_pc = t_t = 1, t_pp = 100: a hop costs 102, and the k-th child waits for k − 1 transmissions more. Nodes at the
    ends of the tree of 0: 1 → 102, 2 → 103, 4 → 104; 3 → 205; 5 → 206, 6 → 207; 7 → 309. Other sources likewise."""
    figures = simulate(SimConfig("vcube-ps", **ONE))
    expected = [102, 103, 104, 205, 206, 207, 309]
    assert figures["reception_latency"]["mean"] == pytest.approx(sum(expected) / 7)
    assert figures["reception_latency"]["max"] == pytest.approx(309)
    assert figures["deliveries"] == 8 and figures["published"] == 1
    assert figures["packets"] == 14, "seven copies, seven acknowledgements"
    assert figures["holding_time"]["max"] == 0 and figures["barrier_size"]["max"] == 0


def test_the_trace_tells_the_distance_from_the_source():
    events = simulate_to_memory(SimConfig("vcube-ps", **ONE))[1]
    source = next(event.node for event in events if event.kind == Kind.PUBLISH)
    hops = {event.node: event.hops for event in events if event.kind == Kind.RECEIVE and event.source is not None}
    assert hops == {node: (node ^ source).bit_count() for node in range(8) if node != source}


def test_holding_counts_as_delivery_latency_and_not_as_reception_latency():
    figures = simulate(
        SimConfig(
            "vcube-ps", nodes=32, publishers="100%", workload="respond:1:20", propagation="uniform:10:300", seed=4
        )
    )
    assert figures["holding_time"]["max"] > 0
    held = figures["delivery_latency"]["mean"] - figures["reception_latency"]["mean"]
    assert held == pytest.approx(figures["holding_time"]["mean"])


def test_a_run_can_stop_and_go_on():
    whole, parts = prepare(SimConfig("vcube-ps", **ONE)).world, prepare(SimConfig("vcube-ps", **ONE)).world
    for world in (whole, parts):
        world.start()
    assert whole.run()
    assert not parts.run(until=50.0)
    assert not parts.run(most_events=3)
    assert [parts.run(until=float(time)) for time in range(60, 2000, 10)][-1]
    assert parts.statistics.digest() == whole.statistics.digest()


def test_something_can_happen_before_the_event_a_stopped_run_looked_at():
    world = prepare(SimConfig("vcube-ps", **ONE)).world
    seen: list[float] = []
    world.at(5000.0, lambda: seen.append(world.now))
    world.run(until=4000.0)
    world.at(4500.0, lambda: seen.append(world.now))
    assert world.run()
    assert seen == [4500.0, 5000.0]


class Alarm(Handlers):
    """A machine that only sets timers; it notes when they ring."""

    def __init__(self) -> None:
        self.rang: list[tuple[float, Hashable]] = []

    def on_start(self, now: float) -> Effects:
        return [SetTimer("a", now + 10), SetTimer("b", now + 20), SetTimer("c", now + 30), SetTimer("a", now + 40)]

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        self.rang.append((now, timer))
        return [CancelTimer("c")]

    def invariants(self) -> None:
        pass


def alarms(*, pause: bool = False, crash: bool = False) -> list[tuple[float, Hashable]]:
    made: list[Alarm] = []

    def make(node: int, incarnation: int) -> Alarm:
        made.append(Alarm())
        return made[-1]

    world = World([0], make, Network(1, constant(1.0, stream(1))), Codec(()), careful=True)
    if pause:
        world.at(15.0, world.pause, 0)
        world.at(100.0, world.resume, 0)
    if crash:
        world.at(15.0, world.crash, 0)
        world.at(17.0, world.restart, 0)
    world.start()
    world.run()
    return [ring for alarm in made for ring in alarm.rang]


def test_setting_a_timer_again_moves_it_and_cancelling_silences_it():
    assert alarms() == [(20.0, "b"), (40.0, "a")]


def test_timers_of_a_paused_node_ring_when_it_goes_on():
    assert alarms(pause=True) == [(100.0, "b"), (100.0, "a")]


def test_timers_of_a_former_life_stay_silent():
    assert alarms(crash=True) == [(37.0, "b"), (57.0, "a")]


def test_streams_are_independent_of_each_other():
    assert stream(1, "network").random() == stream(1, "network").random()
    assert (
        len({stream(*key).random() for key in [(1, "network"), (1, "faults"), (2, "network"), (1, "churn", "t")]}) == 4
    )
