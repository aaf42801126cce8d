"""The swarm finds each defect of Brisa's printed rules, and none of them where they are corrected.

Processes come and go, links break, sides are cut off, processes are slow or stand still. After every step no process
may be its own ancestor, and a world comes to rest only when no process lacks what a neighbour has.
"""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from cubecast.experiments.swarm import judge
from cubecast.protocol.epidemic.brisa_flow import Flow
from cubecast.protocol.families import find
from cubecast.sim.schedule import Schedule
from cubecast.sim.swarm import draw
from cubecast.sim.swarm_run import Wrap

SCHEDULES = 120
FIRST_SILENT = 600
"""A deactivation has to cross an activation: rare."""


def keeping(machines: dict[int, Any]) -> Wrap:
    def wrap(make):
        def made(node, incarnation):
            machines[node] = make(node, incarnation)
            return machines[node]

        return made

    return wrap


def tormented(seed: int, rules: str, parents: str) -> tuple[Schedule, str, dict[int, Any]]:
    """How it ended (well: empty), and the machines as they were then."""
    profile = replace(find("brisa").nemesis, settings={"rules": (rules,), "parents": (parents,)})
    machines: dict[int, Any] = {}
    schedule = draw("brisa", seed, profile)
    failure = judge(schedule, keeping(machines))
    return schedule, "" if failure is None else f"{failure.kind}: {failure.reasons[0]}", machines


def silent_parents(machines: dict[int, Any]) -> int:
    """Processes fed by one that thinks it was told not to."""
    found = 0
    for node, machine in machines.items():
        for key, flow in machine.flows.items():
            parent = machines[flow.primary].flows.get(key) if flow.primary is not None else None
            found += parent is not None and parent.have > flow.have and node in parent._off_out
    return found


def test_printed_rules_adopt_in_circles():
    ends = [tormented(seed, "paper", "1")[1] for seed in range(SCHEDULES)]
    in_circles = sum("in a cycle" in end for end in ends)
    assert in_circles > SCHEDULES / 5, f"{in_circles} of {SCHEDULES}"


def test_printed_deactivations_leave_parents_that_send_nothing():
    """Where no process ever was its own ancestor: nothing else is wrong there."""
    found = []
    for seed in range(FIRST_SILENT, FIRST_SILENT + SCHEDULES):
        _, end, machines = tormented(seed, "paper", "1")
        found += [seed] if end.startswith("stuck") and silent_parents(machines) else []
    assert found, f"none in {SCHEDULES}"


def test_printed_depths_race_downwards():
    """Deeper than there are processes."""
    deep = []
    for seed in range(SCHEDULES):
        schedule, _, machines = tormented(seed, "paper", "2")
        depth = max(flow.depth for machine in machines.values() for flow in machine.flows.values())
        deep += [seed] if depth > len(schedule.nodes) else []
    assert deep, f"none in {SCHEDULES}"


@pytest.mark.parametrize("parents", ["1", "2"])
def test_nobody_starves_and_nothing_cycles_by_labels(parents: str):
    for seed in range(SCHEDULES):
        schedule, end, machines = tormented(seed, "label", parents)
        assert not end and not silent_parents(machines), f"seed {seed}: {end}"
        assert all(
            flow.depth <= len(schedule.nodes) for machine in machines.values() for flow in machine.flows.values()
        )


def test_who_does_not_notice_that_it_is_behind_stays_so():
    """B15 left out: what a deactivation, a lost answer or a newcomer's beginning left it without."""

    def on_keep_alive(self, sender, standing):
        self._known[sender] = standing
        if not self._root and self.primary is None:
            self._consider(sender, standing)

    with patch.object(Flow, "on_keep_alive", on_keep_alive):
        for seed in range(SCHEDULES):
            end = judge(draw("brisa", seed))
            if end is not None and end.kind == "stuck" and "a neighbour has" in end.reasons[0]:
                print(f"seed {seed}")
                return
    raise AssertionError(f"none in {SCHEDULES}")


@pytest.mark.slow
def test_six_thousand_schedules_with_every_parameter():
    for seed in range(1, 6001):
        failure = judge(draw("brisa", seed))
        assert failure is None, failure
