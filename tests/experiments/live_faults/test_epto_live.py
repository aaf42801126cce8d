"""EpTO between real processes: whatever happens to some, the others deliver in one order and hear what they miss."""

import asyncio
from pathlib import Path

import pytest

from cubecast.check import Verdict, check_directory
from cubecast.experiments.live_faults.cluster import ClusterConfig, LiveCluster
from cubecast.experiments.live_faults.run import collected
from cubecast.pipeline.verify import verify


def cluster_of(members: int, directory: Path, period: float) -> ClusterConfig:
    settings = {"protocol": "epto", "parameters": {"period": str(period)}}
    return ClusterConfig(
        members=members, seed=1, directory=directory, proxies=False, settings=settings, patience=5.0, round_length=1.0
    )


async def delivered(cluster: LiveCluster, messages: int) -> None:
    """Everybody who can answer has got so many more."""
    before = {number: status["delivered"] for number, status in (await cluster.statuses()).items()}

    async def more() -> bool:
        now = await cluster.statuses()
        return all(now[number]["delivered"] >= before[number] + messages for number in now if number in before)

    await cluster.until(more, f"{messages} more deliveries everywhere")


async def accidents(config: ClusterConfig, rate: float) -> dict[int, dict]:
    """The last stands still for a second, the one before it is killed, all others go on."""
    last = config.members - 1
    async with LiveCluster(config) as cluster:
        await cluster.publish(rate)
        await delivered(cluster, 50)
        cluster.stop(last)
        asyncio.get_running_loop().call_later(1.0, cluster.resume, last)
        await cluster.members[last].ask("status")  # answers when it goes on
        cluster.kill(last - 1)
        await cluster.members[last - 1].ended()
        await delivered(cluster, 50)
        await cluster.drain()
        statuses = await cluster.statuses()
        await cluster.conclude()
    return statuses


def judge_both(config: ClusterConfig) -> None:
    trace = collected(config, "epto")
    report = check_directory(trace)
    assert report.verdict is Verdict.VALID, report.witnesses
    judged = verify(None, [trace])
    assert judged.verdict == "VALID"
    assert judged.to_json()["measured"] == report.to_json()["measured"]
    print(report.measured["P4"].to_json(), report.deliveries)
    assert report.measured["P4"].kept > 100 * (config.members - 1)


def test_one_stands_still_and_one_is_killed(tmp_path: Path):
    config = cluster_of(4, tmp_path, 0.02)
    statuses = asyncio.run(accidents(config, 25.0))
    assert sorted(statuses) == [0, 1, 3] and not any(status["wrong"] for status in statuses.values())
    judge_both(config)


@pytest.mark.slow
def test_sixteen_nodes(tmp_path: Path):
    config = cluster_of(16, tmp_path, 0.02)
    statuses = asyncio.run(accidents(config, 4.0))
    assert len(statuses) == 15 and not any(status["wrong"] for status in statuses.values())
    assert statuses[15]["incarnation"] == 0, "who stood still goes on"
    judge_both(config)
