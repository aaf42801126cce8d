"""Make a failing schedule smaller while it still fails: first faults, then nodes, then what applications do."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from cubecast.ids import NodeId
from cubecast.sim.faults import nodes_of
from cubecast.sim.schedule import SEVERAL, Schedule

T = TypeVar("T")
Fails = Callable[[Schedule], bool]
MOST_RUNS = 400


def shrink(schedule: Schedule, fails: Fails, most_runs: int = MOST_RUNS) -> Schedule:
    """The smallest failing schedule that greedy removal finds within so many runs."""
    runs = 0
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(schedule):
            if runs == most_runs:
                return schedule
            runs += 1
            if fails(smaller):
                schedule, progress = smaller, True
                break
    return schedule


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    for faults in _parts(schedule.faults):
        yield replace(schedule, faults=faults)
    for suspicions in _parts(schedule.suspicions):
        yield replace(schedule, suspicions=suspicions)
    for node in reversed(schedule.nodes):
        if len(schedule.nodes) > 2:
            yield _without(schedule, node)
    for actions in _parts(schedule.actions):
        yield replace(schedule, actions=actions)
    if schedule.reactions:
        yield replace(schedule, reactions=schedule.reactions // 2)
    if len(schedule.members) > 1:
        for topic in schedule.members:
            actions = tuple(one for one in schedule.actions if topic not in one.topic.split(SEVERAL))
            members = {name: nodes for name, nodes in schedule.members.items() if name != topic}
            yield replace(schedule, members=members, actions=actions)
    if schedule.coded:
        yield replace(schedule, coded=False)


def _parts(items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Without halves, quarters … single items."""
    size = len(items)
    while size > 1:
        size //= 2
        for start in range(0, len(items), size):
            yield items[:start] + items[start + size :]
    if len(items) == 1:
        yield ()


def _without(schedule: Schedule, node: NodeId) -> Schedule:
    return replace(
        schedule,
        nodes=tuple(one for one in schedule.nodes if one != node),
        members={topic: tuple(one for one in nodes if one != node) for topic, nodes in schedule.members.items()},
        actions=tuple(one for one in schedule.actions if one.node != node),
        suspicions=tuple(one for one in schedule.suspicions if node not in one[1:]),
        faults=tuple(fault for fault in schedule.faults if not nodes_of(fault) >> node & 1),
    )
