"""Live processes, real sockets, real signals: after each accident everything promised held, and nothing is stuck.

`run_schedule` raises with the seed and the schedule unless the reference checker says VALID, every payload arrived as
it was published, and every machine, told again what it was told, does again what it did.
"""

import asyncio

import pytest

from cubecast.check import Verdict
from cubecast.experiments.live_faults.cluster import ClusterConfig, LiveCluster
from cubecast.experiments.live_faults.run import Accident, Fault, LiveSchedule, Outcome, draw, judged, run_schedule
from cubecast.net.node.input_log import replay_all


def after(tmp_path, *faults: Fault, members: int = 4, rate: float = 100.0) -> Outcome:
    schedule = LiveSchedule(1, members, faults, rate)
    return asyncio.run(run_schedule(schedule, tmp_path / "run"))


def test_a_publisher_is_killed_in_the_middle_of_its_stream(tmp_path):
    outcome = after(tmp_path, Fault(0.5, Accident.KILL, 1), rate=300.0)
    assert sorted(outcome.statuses) == [0, 2, 3]
    assert outcome.report.deliveries > 500
    assert outcome.steps_replayed > 100


def test_a_process_that_stood_still_comes_back_as_a_new_incarnation_and_says_what_it_missed(tmp_path):
    config = ClusterConfig(members=3, seed=1, directory=tmp_path, patience=5.0, round_length=1.0, inputs=True)
    statuses = asyncio.run(_stopped_until_missed(config))
    assert statuses[2]["incarnation"] >= 1 and statuses[2]["gaps"] >= 1
    assert [statuses[node]["incarnation"] for node in (0, 1)] == [0, 0], "the others are not disturbed"
    assert [statuses[node]["gaps"] for node in (0, 1)] == [0, 0]
    assert judged(config, "stopped").verdict is Verdict.VALID
    assert replay_all(config.input_logs)[1] == []


async def _stopped_until_missed(config):
    async with LiveCluster(config) as cluster:
        await cluster.publish(100.0)
        cluster.stop(2)
        await cluster.until_together([0, 1])
        cluster.resume(2)
        await cluster.until_together([0, 1, 2])
        await cluster.drain()
        statuses = await cluster.statuses()
        await cluster.conclude()
    return statuses


def test_a_process_that_is_started_again_takes_part_again(tmp_path):
    outcome = after(tmp_path, Fault(0.3, Accident.RESTART, 1, seconds=0.2), members=3)
    assert outcome.incarnations[1] >= 1
    assert outcome.statuses[1]["delivered"] > 0


def test_links_that_break_again_and_again(tmp_path):
    storm = [Fault(0.2, Accident.RESET, node, peer, 1.5, amount=0.05) for node, peer in ((0, 1), (1, 2), (0, 3))]
    assert after(tmp_path, *storm).resets > 10


def test_a_direction_that_is_cut_and_heals(tmp_path):
    outcome = after(tmp_path, Fault(0.3, Accident.CUT, 0, 1, 1.0), Fault(0.3, Accident.CUT, 2, 0, 2.0))
    assert outcome.report.deliveries > 500


def test_damaged_frames_are_refused(tmp_path):
    damage = [Fault(0.2, Accident.DAMAGE, node, peer, 1.5, amount=0.2) for node, peer in ((0, 1), (1, 2), (2, 3))]
    assert after(tmp_path, *damage).damaged > 5


def test_a_link_that_stands_still(tmp_path):
    outcome = after(tmp_path, Fault(0.3, Accident.STALL, 0, 1, 2.0), Fault(0.5, Accident.DELAY, 2, 3, 1.0, 0.2))
    assert outcome.report.deliveries > 500


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_whatever_the_seed_brings(tmp_path, seed):
    asyncio.run(run_schedule(draw(seed, patience=1.0), tmp_path / "run"))


def test_schedules_follow_from_their_seed():
    assert [str(draw(seed, patience=1.0)) for seed in range(50)] == [
        str(draw(seed, patience=1.0)) for seed in range(50)
    ]
    drawn = [draw(seed, patience=1.0) for seed in range(200)]
    assert {fault.accident for schedule in drawn for fault in schedule.faults} == set(Accident)
    assert all(len(schedule.killed) <= (schedule.members - 1) // 2 for schedule in drawn)
    assert all(schedule.length <= 4.0 for schedule in drawn)
