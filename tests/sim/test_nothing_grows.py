"""Nothing a node keeps grows with history when nodes come and go for long: epochs, closed lives, views, barriers."""

import pickle

import pytest

from cubecast.sim.faults import Crash, Restart
from cubecast.sim.schedule import Action, Schedule
from cubecast.sim.swarm_run import run

LENGTH = 4000.0
BYTES_PER_LIFE = 200


def cycles(count, publishers):
    """So many times node 3 crashes, returns, subscribes and publishes, and node 2 leaves and comes back."""
    actions, faults = [], []
    for at in (LENGTH * k for k in range(count)):
        actions += [Action(at + 100, "publish", node, "t") for node in publishers]
        actions += [Action(at + 500, "unsubscribe", 2, "t"), Action(at + 800, "subscribe", 2, "t")]
        actions += [Action(at + 3000, "subscribe", 3, "t"), Action(at + 3400, "publish", 3, "t")]
        faults += [Crash(3, at + 1000), Restart(3, at + 1500)]
    return Schedule(
        *("cubecast", 1, 4, (0, 1, 2, 3), {"t": (0, 1, 2, 3)}, {"retry": "500.0"}, "constant:20", False),
        *(tuple(sorted(actions)), tuple(faults), ()),
        heal_at=LENGTH * count + 1000,
    )


def survivors(schedule):
    """The machines of nodes 0 to 2 at the end."""
    machines = {}

    def keep(make):
        def made(node, incarnation):
            machines[node] = make(node, incarnation)
            return machines[node]

        return made

    outcome = run(schedule, keep, careful=False)
    assert not outcome.stuck and not outcome.crash
    return [machines[node] for node in (0, 1, 2)]


def sizes(machines):
    return [len(pickle.dumps(machine)) for machine in machines]


@pytest.mark.parametrize("publishers", [(0,), (0, 1, 2)], ids=["one publishes", "all publish"])
def test_sizes_stay_the_same_over_many_lives_and_subscriptions(publishers):
    few, many = (sizes(survivors(cycles(count, publishers))) for count in (5, 30))
    print(f"bytes per node after 5 and after 30 lives: {few}, {many}")
    for before, after in zip(few, many, strict=True):
        assert after <= 1.1 * before


def test_what_only_a_silent_subscriber_keeps_is_small_and_goes_with_its_next_publication():
    """Nobody but the returning node ever publishes: nothing covers the last word of each of its lives."""
    few, many = (survivors(cycles(count, ())) for count in (5, 30))
    for before, after in zip(sizes(few), sizes(many), strict=True):
        assert before < after <= before + 25 * BYTES_PER_LIFE
    schedule = cycles(30, ())
    last_word = Action(LENGTH * 30, "publish", 0, "t")
    again = Action(LENGTH * 30 + 500, "publish", 0, "t")
    spoken = sizes(survivors(Schedule(**{**vars(schedule), "actions": (*schedule.actions, last_word, again)})))
    assert spoken[0] <= 1.1 * sizes(few)[0]
