"""Window by window and event by event are the same run; and who may not go window by window."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from cubecast.sim.config import SimConfig
from cubecast.sim.run import Simulation, prepare
from cubecast.sim.statistics import report
from cubecast.sim.windows import outstanding

FAR = 1e12  # a limit that is never reached, but a limit: event by event


def figures_of(simulation: Simulation, run: Callable[[Any], bool]) -> dict[str, Any]:
    world = simulation.world
    world.start()
    assert run(world)
    state = {"digest": world.statistics.digest(), "now": world.now, "events": world.events}
    return report(world.statistics, world.network) | state | {"waiting": world.machines[0].waiting()}


def drawn(seed: int) -> SimConfig:
    rng = Random(seed)
    protocol = rng.choice(("vcube-ps", "vcube-ps", "srpt", "srpt-b", "causal-broadcast"))
    return SimConfig(
        protocol,
        nodes=rng.choice((2, 4, 16, 64)),
        publishers=rng.choice(("1", "50%", "100%")),
        subscribers="100%" if protocol == "causal-broadcast" else rng.choice(("2", "60%", "100%")),
        messages=rng.randint(1, 5),
        window=rng.choice((1.0, 200.0, 3000.0)),
        topics=rng.choice((1, 1, 3)),
        workload=rng.choice(("uniform", "poisson:70")),
        propagation=rng.choice(("constant:100", "constant:0.5", "constant:33.3")),
        processing=rng.choice((0.0, 1.0, 0.3)),
        transmission=rng.choice((0.0, 1.0, 0.7)),
        settings={"brokers": "1"} if protocol == "srpt-b" else {},
        seed=seed,
    )


@pytest.mark.parametrize("seed", range(60))
def test_window_by_window_and_event_by_event_are_the_same_run(seed: int):
    config = drawn(seed)
    whole = prepare(config)
    assert outstanding(prepare(config).world) is not None
    by_window = figures_of(whole, lambda world: world.run())
    assert by_window == figures_of(prepare(config), lambda world: world.run(until=FAR))


def test_a_refused_publication_is_counted_either_way():
    for run in (lambda world: world.run(), lambda world: world.run(until=FAR)):
        simulation = prepare(SimConfig("vcube-ps", nodes=8, subscribers="4", publishers="1"))
        world = simulation.world
        outsider = next(node for node in world.nodes if not world.subscriptions[node])
        world.at(10.0, world.publish, outsider, "t", (b"",))
        assert figures_of(simulation, run)["refused"] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"propagation": "uniform:50:60"},
        {"fifo_links": True},
        {"queued_control": False},
        {"coded": True},
        {"faults": "crash:1@50"},
        {"faults": "loss:5%@0-100"},
        {"workload": "respond:1:20"},
        {"workload": "periodic:50"},
        {"protocol": "cubecast"},
        {"protocol": "timer-bundling"},
        {"churn_session": 500.0, "subscribers": "50%"},
    ],
)
def test_some_worlds_need_event_after_event(options: dict[str, Any]):
    world = prepare(SimConfig(**{"protocol": "vcube-ps", "nodes": 8} | options)).world
    assert outstanding(world) is None
    assert world.run() and world.events > 0


def test_a_run_that_was_stopped_goes_on_window_by_window():
    config = SimConfig("vcube-ps", nodes=32, publishers="100%")

    def in_parts(world: Any) -> bool:
        assert not world.run(until=300.0)
        assert world.statistics.deliveries > 0
        return world.run()

    assert figures_of(prepare(config), in_parts) == figures_of(prepare(config), lambda world: world.run(until=FAR))
