"""The script the swarm prints of a failing schedule shows, played by hand, the same violation."""

from dataclasses import replace

import pytest

from cubecast.experiments.swarm import judge, shrunk
from cubecast.protocol.families import find
from cubecast.protocol.family import Nemesis
from cubecast.sim.script import scenario
from cubecast.sim.swarm import draw
from support import planted
from support.script_world import ScriptWorld

SMALL = replace(find("cubecast").nemesis, full=False)
"""Small worlds make short scripts."""
PROMISES = tuple(f"{letter}{number}" for letter in "KP" for number in range(14))
CASES = (
    (planted.one_message_per_source, "cubecast", SMALL),
    (planted.settle_skipped, "cubecast", SMALL),
    (planted.forget_before_stable, "cubecast", SMALL),
    (planted.excuse_too_wide, "cubecast", SMALL),
    (planted.one_queue_for_all_topics, "vcube-ps", Nemesis()),
)


def play(script):
    world = ScriptWorld()
    commands = [line for line in script.splitlines() if line and not line.startswith(("#", "----"))]
    return [seen for command in commands for seen in world.execute(command)]


def first_failure(wanted, protocol="cubecast", profile=SMALL):
    for seed in range(1, 400):
        failure = judge(draw(protocol, seed, profile), careful=False)
        if failure is not None and wanted(failure.kind):
            return failure
    raise AssertionError("nothing found")


@pytest.mark.parametrize(("plant", "protocol", "profile"), CASES, ids=lambda one: getattr(one, "__name__", ""))
@pytest.mark.interpreted
def test_it_shows_the_same_violation(plant, protocol, profile):
    with plant():
        failure = shrunk(first_failure(PROMISES.__contains__, protocol, profile))
        script = failure.script()
        output = play(script)
    print(f"{failure.kind}: {len(script.splitlines())} lines")
    assert f"{failure.kind} VIOLATED" in output


@pytest.mark.interpreted
def test_without_the_bug_the_same_script_shows_no_violation():
    with planted.excuse_too_wide():  # it changes what is in packets, not which are sent
        failure = shrunk(first_failure(PROMISES.__contains__))
        script = failure.script()
    assert f"{failure.kind} VALID" in play(script)


@pytest.mark.interpreted
def test_a_stuck_run_says_what_waits():
    with planted.excuse_omitted():
        failure = shrunk(first_failure("stuck".__eq__))
        output = play(failure.script())
    assert output[-1][1:].startswith(": holds") or any("not settled" in line for line in output[-5:])


@pytest.mark.parametrize("seed", range(1, 31))
def test_any_schedule_can_be_played_by_hand(seed):
    """Whatever the swarm draws: the script runs to its end, and the promises hold as they did."""
    output = play(scenario(draw("cubecast", seed, SMALL), "P7"))
    assert output[-1] == "P7 VALID"
