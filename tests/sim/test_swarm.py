"""Swarm testing keeps its promises: many schedules without a violation, a small replayable one otherwise."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from cubecast.cli import main
from cubecast.errors import BadInput
from cubecast.experiments.swarm import judge, shrunk, swarm
from cubecast.protocol.families import FAMILIES, find
from cubecast.protocol.inputs import Publish
from cubecast.sim.schedule import Action, Schedule
from cubecast.sim.swarm import draw
from cubecast.sim.swarm_run import PATIENCE, run
from support import planted


def run_swarm(protocol, seed, schedules):
    *_, tally = swarm(protocol, seed, schedules)
    failure = tally.failure
    assert failure is None, (failure.kind, failure.reasons, failure.replay)
    assert tally.schedules == schedules
    print(f"{protocol}: {schedules} schedules, {schedules / tally.cpu_seconds:.0f} per CPU second, {tally.faults}")
    return tally


FLOORS = {
    "nodes": ("p50", 6),
    "deliveries": ("p50", 80),
    "crashes": ("schedules_with_any", 70),
    "gaps": ("total", 10),
    "reincarnations": ("schedules_with_any", 40),
    "delivered_by_returned": ("schedules_with_any", 10),
    "published_after_healing": ("p50", 10),
}
"""Of 100 schedules: what a gentler swarm would not have."""
PREMISES = {
    "K1 K2 K3": 300,
    "P1 P2 P4": 10_000,
    "P1b": 10_000,
    "P3": 3500,
    "P5 P6": 6000,
    "P7 P8": 1500,
    "P10": 1200,
    "P11": 150,
    "P12 lost": 10,
    "P12 received": 10_000,
    "P13": 2000,
}


def test_a_hundred_dense_schedules_of_cubecast_and_what_they_reach():
    """No violation says little where nothing happened: the tally has floors."""
    tally = run_swarm("cubecast", 1, 100)
    told = tally.reached.to_json()
    print(json.dumps(told, indent=1))
    found = {name: told["distribution"][name][which] for name, (which, _) in FLOORS.items()}
    assert all(found[name] >= floor for name, (_, floor) in FLOORS.items()), found
    assert all(told["premises"].get(name, 0) >= floor for name, floor in PREMISES.items()), told["premises"]
    assert min(told["settings"].values()) >= 15, told["settings"]
    assert len(tally.faults) >= 15


@pytest.mark.slow
def test_twenty_thousand_schedules_of_cubecast():
    run_swarm("cubecast", 1, 20_000)


TORMENTED = [name for name in FAMILIES if name != "cubecast" and Publish in find(name).requests]


@pytest.mark.parametrize("protocol", TORMENTED)
def test_every_family_can_be_tormented(protocol):
    """With what it claims to survive, and judged by what it promises."""
    tally = run_swarm(protocol, 1, 20)
    assert tally.deliveries, "nothing was delivered, so that nothing was judged"


STATIC = [name for name in TORMENTED if find(name).static_promises]
CHANGING = (("vcube-ps", 2772), ("srpt", 34), ("srpt-b", 4))


@pytest.mark.slow
@pytest.mark.parametrize("protocol", TORMENTED)
def test_a_family_promises_only_what_its_swarm_holds(protocol):
    run_swarm(protocol, 1, 3000)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", STATIC)
def test_what_holds_while_nobody_joins_or_leaves_is_tried_apart(protocol):
    calm = replace(find(protocol).nemesis, joins=False)
    tried = [judge(draw(protocol, seed, calm), careful=False) for seed in range(1, 1001)]
    assert not any(tried), next(filter(None, tried))


@pytest.mark.parametrize(("protocol", "seed"), CHANGING)
def test_what_is_promised_without_joins_only_breaks_with_them(protocol, seed):
    """Otherwise the header would promise too little."""
    family = find(protocol)
    assert protocol in STATIC
    schedule = draw(protocol, seed, replace(family.nemesis, joins=True))
    assert judge(schedule) is None
    failure = judge(schedule, promises=family.promised(static=True))
    assert failure is not None and failure.kind in family.static_promises


def test_a_seed_is_a_schedule():
    assert draw("cubecast", 5) == draw("cubecast", 5)
    assert draw("cubecast", 5) != draw("cubecast", 6)


def test_slow_is_not_stuck():
    """One message at a time over slow links: long after everything is healed a publisher still empties its queue."""
    queue = (Action(100.0, "publish", 0, "t", messages=80),)
    settings = {"window": "1", "max_batch": "1", "retry": "2000"}
    slow = Schedule("cubecast", 1, 4, (0, 1), {"t": (0, 1)}, settings, "constant:600", False, queue, (), ())
    outcome = run(slow)
    assert not outcome.stuck, outcome.stuck
    assert outcome.events[-1].time > slow.heal_at + PATIENCE


@pytest.mark.interpreted
def test_a_failure_is_shrunk_and_replays():
    with planted.one_message_per_source():
        failure = next(filter(None, (judge(draw("cubecast", seed)) for seed in range(1, 50))))
        smaller = shrunk(failure)
        assert smaller.kind == failure.kind
        assert len(smaller.schedule.faults) <= len(failure.schedule.faults)
        assert len(smaller.schedule.actions) < len(failure.schedule.actions)
        text = smaller.replay.removeprefix("cubecast swarm --replay '").removesuffix("'")
        assert judge(Schedule.from_text(text)) == smaller
    assert judge(Schedule.from_text(text)) is None


@pytest.mark.interpreted
def test_a_stuck_run_says_what_waits_for_what():
    with planted.excuse_omitted():
        failures = [judge(draw("cubecast", seed), careful=False) for seed in range(1, 20)]
    reasons = [reason for failure in failures if failure and failure.kind == "stuck" for reason in failure.reasons]
    assert any("holds" in reason and "until" in reason for reason in reasons)


def test_the_command_line():
    result = CliRunner().invoke(main, ["swarm", "--schedules", "20", "--seed", "3", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert (figures["schedules"], figures["violations"], figures["failure"]) == (20, 0, None)


@pytest.mark.interpreted
def test_the_command_line_reports_a_violation():
    with planted.excuse_omitted():
        result = CliRunner().invoke(main, ["swarm", "--schedules", "200"])
    assert result.exit_code == 1
    assert "cubecast swarm --replay" in result.stdout


@pytest.mark.parametrize("arguments", [["--protocol", "nonsense"], ["--replay", "{}"], ["--schedules", "0"]])
def test_bad_input_is_one_line(arguments):
    result = CliRunner().invoke(main, ["swarm", *arguments])
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1


def test_nonsense_is_not_a_schedule():
    with pytest.raises(BadInput):
        Schedule.from_text("[1, 2")
