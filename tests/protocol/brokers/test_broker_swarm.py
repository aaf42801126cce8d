"""Crashes, wrong suspicion and isolation of as many brokers as f allows, judged by what applications see."""

from collections import Counter

import pytest

from cubecast.experiments.swarm import judge
from cubecast.protocol.brokers.tree import at_most, binary, line
from cubecast.protocol.families import find
from cubecast.sim.swarm import draw

CURED = {
    "what nobody has any more took along what came after it": 176,
    "nothing told of an event that waited for where it begins, when its publisher's broker was gone": 716,
    "what a removed broker left here was overtaken by what depends on it": 628,
    "nothing told of a copy that came again, after a subscription that did not get the first": 631,
    "a world was held to be at rest with an event under way": 2157,
}
"""Schedules that went wrong, by what was behind it."""


@pytest.mark.parametrize("seed", CURED.values())
def test_schedules_that_went_wrong_once_do_not(seed: int):
    failure = judge(draw("locaps", seed))
    assert failure is None, failure.reasons


def test_no_more_fail_than_f_allows_and_not_fewer():
    kinds: Counter[str] = Counter()
    nemesis = find("locaps").nemesis
    for seed in range(1, 200):
        schedule = draw("locaps", seed)
        ended = {fault.node for fault in schedule.faults if type(fault).__name__ in ("Crash", "Cutoff", "Half")}
        assert nemesis.survives(schedule.nodes, schedule.settings, frozenset(ended)), schedule.to_text()
        assert schedule.settings["faults"] != "0" or not ended
        kinds.update(type(fault).__name__ for fault in schedule.faults)
    assert set(kinds) == {"Crash", "Cutoff", "Half", "Suspect", "Partition", "LinkTrouble", "Slow"}
    assert min(kinds.values()) > 20, kinds


def test_faults_are_counted_on_every_path():
    assert at_most(line(7), 1, {0, 3, 6}) and not at_most(line(7), 1, {0, 2})
    assert at_most(line(7), 2, {0, 1, 5, 6}) and not at_most(line(7), 2, {0, 2, 4})
    assert not at_most(line(2), 0, {1}) and at_most(line(2), 0, ())
    assert at_most(binary(2), 1, {3, 6}) and not at_most(binary(2), 1, {3, 4})
