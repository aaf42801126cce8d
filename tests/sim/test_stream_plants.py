"""Every correction of Brisa's rules left out is found by worlds in which processes fail and links break.

"Found": in some drawn world parents form a cycle, somebody starves, or what the correction is for is seen directly.
Where B15 is left out besides, which heals what other rules forget, the same world without B15 alone has to be unharmed.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from unittest.mock import patch

import pytest

from cubecast.protocol.epidemic.brisa_flow import Flow
from cubecast.protocol.epidemic.hyparview import HyParView, Neighbour
from cubecast.protocol.epidemic.membership import Membership
from cubecast.sim.run import Simulation
from support.stream_worlds import MESSAGES, add_churn, add_faults, living, run_watching, stream

NODES = 40
MOST_SEEDS = 25
Plant = Callable[[], AbstractContextManager[object]]
Faults = Callable[[Simulation, int], None]


def harmed(simulation: Simulation, seed: int, faults: Faults = add_faults) -> bool:
    faults(simulation, seed)
    cycled, starved = run_watching(simulation)
    return cycled or starved


def not_noticing_to_be_behind() -> AbstractContextManager[object]:
    """Without B15, which would heal in two ticks what other rules forget."""

    def on_keep_alive(self, sender, standing):
        self._known[sender] = standing
        if not self._root and self.primary is None:
            self._consider(sender, standing)

    return patch.object(Flow, "on_keep_alive", on_keep_alive)


def no_objection() -> AbstractContextManager[object]:
    """B9: a mutual deactivation that crossed an activation leaves a silent parent."""
    on_feed = Flow.on_feed

    def silent(self, sender, packet):
        wanted = sender in self.parents or sender == self._asking
        if packet.on or not packet.mutual or not wanted:
            on_feed(self, sender, packet)
        else:
            self._known[sender] = packet.standing
            self._off_out.add(sender)

    stack = ExitStack()
    stack.enter_context(not_noticing_to_be_behind())
    stack.enter_context(patch.object(Flow, "on_feed", silent))
    return stack


def nothing_is_brought() -> AbstractContextManager[object]:
    """B10: a new parent is told to feed, and does not send what is missing."""
    stack = ExitStack()
    stack.enter_context(not_noticing_to_be_behind())
    stack.enter_context(patch.object(Flow, "_bring", lambda self, peer, have: None))
    return stack


def metric_is_the_last_link() -> AbstractContextManager[object]:
    """Delay-aware by the round trip to the parent, not by that of the whole way."""
    become = Flow._become_child

    def near(self, peer, position):
        become(self, peer, position)
        self._metric = self._host.link_cost(peer, position)

    return patch.object(Flow, "_become_child", near)


def least_metric_is_forgotten() -> AbstractContextManager[object]:
    """`fd`: round trips change, so that a process's metric may rise while it has as many messages."""

    def better(self, standing):
        metric = standing.position.metric
        return standing.have > self.have or (standing.have == self.have and metric < self._metric)

    return patch.object(Flow, "_better", better)


def islands_stay() -> AbstractContextManager[object]:
    """H9: contacts are not asked for streams that flow elsewhere."""
    return patch.object(Membership, "_stands_still", staticmethod(lambda mine, before, theirs: False))


def any_label_will_do() -> AbstractContextManager[object]:
    """B6: whoever answers is adopted."""
    return patch.object(Flow, "_better", lambda self, standing: True)


PLANTS: tuple[tuple[str, Plant, Plant, dict[str, str], Faults], ...] = (
    ("any label will do", any_label_will_do, nullcontext, {}, add_faults),
    ("no objection", no_objection, not_noticing_to_be_behind, {}, add_faults),
    ("nothing is brought", nothing_is_brought, not_noticing_to_be_behind, {}, add_faults),
    ("metric is the last link", metric_is_the_last_link, nullcontext, {"strategy": "delay-aware"}, add_faults),
    ("least metric is forgotten", least_metric_is_forgotten, nullcontext, {"strategy": "delay-aware"}, add_churn),
    ("islands stay", islands_stay, nullcontext, {}, add_churn),
)
"""Name, what is left out, what of it must not be enough alone, settings, what happens to the processes."""
RARE = ("no objection",)
"""It takes some ten worlds."""


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("name", "plant", "background", "settings", "faults"),
    [pytest.param(*one, id=one[0], marks=[pytest.mark.slow] if one[0] in RARE else []) for one in PLANTS],
)
def test_a_rule_left_out_is_found(name: str, plant: Plant, background: Plant, settings: dict[str, str], faults: Faults):
    for seed in range(MOST_SEEDS):
        with plant():
            found = harmed(stream(seed, NODES, **settings), seed, faults)
        if found:
            with background():
                found = not harmed(stream(seed, NODES, **settings), seed, faults)
        if found:
            print(f"{name}: seed {seed}")
            return
    raise AssertionError(f"{MOST_SEEDS} worlds did not find: {name}")


def test_several_parents_by_depth_alone_race_downwards():
    """As printed, two neighbours of equal depth adopt each other, and each moves below the other with every message."""
    depths = {}
    for rules in ("paper", "label"):
        simulation = stream(1, NODES, rules=rules, parents="2")
        run_watching(simulation)
        machines = simulation.world.machines.values()
        depths[rules] = max(flow.depth for machine in machines for flow in machine.flows.values())
    assert depths["label"] < NODES / 3 and depths["paper"] > MESSAGES / 2, depths


@pytest.mark.interpreted
def test_links_that_one_end_believes_in_are_found():
    """H3: a walk's end counts the newcomer as a neighbour at once, asked or not."""

    def at_once(self, peer, *, high):
        if peer != self.me:
            self._send(peer, Neighbour(high))
            self._add(peer)

    def one_sided(simulation: Simulation) -> int:
        world, found = simulation.world, 0
        world.start()
        for time in range(250, 20_000, 250):
            world.run(float(time))
            active = {node: world.machines[node].overlay.active for node in living(world)}
            found += sum(peer in active and node not in active[peer] for node, its in active.items() for peer in its)
        return found

    right = one_sided(stream(3, NODES))
    with patch.object(HyParView, "_ask", at_once):
        assert one_sided(stream(3, NODES)) > 3 * right + 20


@pytest.mark.parametrize(
    "settings", [{}, {"parents": "2"}, {"strategy": "delay-aware"}, {"strategy": "gerontocratic", "parents": "2"}]
)
def test_nobody_starves_and_nothing_cycles_through_churn_partitions_and_slow_links(settings: dict[str, str]):
    assert not harmed(stream(1, NODES, **settings), 1, add_churn), settings


@pytest.mark.slow
def test_many_more_worlds_with_churn_partitions_and_slow_links_heal():
    for seed in range(200, 260):
        settings: dict[str, str] = ({}, {"parents": "2"}, {"strategy": "delay-aware"})[seed % 3]
        simulation = stream(seed, NODES, **settings)
        add_faults(simulation, seed)
        assert not harmed(simulation, seed, add_churn), f"seed {seed}, {settings}"
