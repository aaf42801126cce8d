"""The defects of the published algorithms are rediscovered by the swarm, and cubecast has none of them."""

from unittest.mock import patch

import pytest

from cubecast.experiments.swarm import judge, swarm
from cubecast.protocol.family import Nemesis
from cubecast.protocol.hypercube.vcube_pb import VCubePB
from cubecast.sim.schedule import Action, Schedule
from cubecast.sim.swarm import draw

FULL = ("K0", "K1", "K2", "K3", "P1", "P1b", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P11", "P12", "P13")
CRASHES = Nemesis(("crash", "cutoff", "half"), joins=False, outsiders=False)
RESTARTS = Nemesis(("restart", "delay"), joins=True, outsiders=False)


def first_failure(protocol, kinds, most=1500, profile=None, wrap=None, because=""):
    """The first seed whose failure is of one of these kinds, for such a reason."""
    for seed in range(1, most + 1):
        failure = judge(draw(protocol, seed, profile), wrap, careful=False, promises=FULL)
        if failure is not None and failure.kind in kinds and any(because in reason for reason in failure.reasons):
            print(f"{protocol}: seed {seed}, {failure.kind}: {failure.reasons[0]}")
            return failure
    raise AssertionError(f"{most} schedules of {protocol} show none of {kinds}")


def test_v2_members_lose_messages_when_a_joiner_forwards():
    failure = first_failure("vcube-ps", {"P3", "P4", "P6", "P8"})
    assert any(action.kind == "subscribe" for action in failure.schedule.actions)


def test_v3_a_newcomer_blocks_for_ever():
    first_failure("vcube-ps", {"stuck"}, because="held, waits for")


def test_v5_a_restarted_node_is_taken_for_its_former_self():
    def forgetful(make):
        return lambda node, incarnation: make(node, 0)

    first_failure("vcube-ps", {"K0", "P2", "stuck", "assertion", "P12"}, profile=RESTARTS, wrap=forgetful)


def test_r3_vcube_pb_holds_for_ever_what_depends_on_a_lost_message():
    first_failure("vcube-pb", {"stuck"}, most=3000, profile=CRASHES, because="held, waits for")


def test_r1_one_message_per_source_needs_stop_and_wait():
    """Pipelining breaks VCube-PB's agreement: it keeps only the last message of a source."""
    with patch.object(VCubePB, "_outstanding", lambda self, state: False):
        first_failure("vcube-pb", {"P3", "P4", "P7", "P5", "assertion", "stuck"}, most=3000)


def test_vcube_pb_keeps_its_own_promises():
    *_, tally = swarm("vcube-pb", 1, 2000)
    assert tally.failure is None, (tally.failure.kind, tally.failure.reasons, tally.failure.replay)
    assert tally.faults["Cutoff"] > 500


@pytest.mark.slow
def test_vcube_pb_keeps_its_own_promises_for_long():
    *_, tally = swarm("vcube-pb", 1, 20_000)
    assert tally.failure is None, (tally.failure.kind, tally.failure.reasons, tally.failure.replay)


def join_storm(protocol, seed):
    """32 nodes, 8 of them join while everybody publishes."""
    nodes = tuple(range(32))
    joiners = nodes[3::4]
    members = tuple(node for node in nodes if node not in joiners)
    joins = [Action(40.0 * k, "subscribe", node, "t") for k, node in enumerate(joiners)]
    publications = [Action(25.0 * k, "publish", members[(5 * k) % len(members)], "t") for k in range(60)]
    actions = tuple(sorted(joins + publications))
    return Schedule(protocol, seed, 32, nodes, {"t": members}, {}, "uniform:50:150", False, actions, (), ())


def test_the_join_storm_loses_deliveries_in_vcube_ps_and_none_in_cubecast():
    seeds = range(6)
    lossy = [seed for seed in seeds if judge(join_storm("vcube-ps", seed), careful=False, promises=FULL) is not None]
    print(f"join storms in which VCube-PS breaks a promise: {len(lossy)} of {len(seeds)}")
    assert lossy
    for seed in seeds:
        assert judge(join_storm("cubecast", seed), careful=False, promises=FULL) is None
