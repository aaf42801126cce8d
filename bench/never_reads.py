"""A subscriber that never reads: what does its node keep, and do the others notice?

Four live nodes talk on one topic; on another one three of them publish as much as they may, and the subscriber at the
fourth stops reading. Its node must stay within its budget, publishers must be held back rather than pile up, and the
talk must go on. Prints memory and latencies before and after.
"""

import argparse
import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cubecast.experiments.live_faults.cluster import ClusterConfig, LiveCluster

TALK, FLOOD = "talk", "flood"
PEER_BUDGET = 4 << 20
TOPIC_BUDGET = 1 << 20
NEVER_READS = 3
PUBLISHERS = (0, 1, 2)


@dataclass
class Found:
    before: list[float]
    """Sorted latencies of the talk, in seconds, while everybody reads."""
    during: list[float]
    growth: dict[int, int]
    """Per node, bytes of memory at the end beyond those when its neighbour stopped reading."""
    held: int
    """Messages that publishers hold, accepted and not stable."""
    caught_up: bool
    """Once it reads again, everything arrives."""

    def p(self, share: float) -> tuple[float, float]:
        return tuple(found[int(share * len(found))] for found in (self.before, self.during))


async def measure(directory: Path, seconds: float, flood_rate: float) -> Found:
    settings = {"peer_budget": PEER_BUDGET, "topic_budget": TOPIC_BUDGET}
    config = ClusterConfig(
        members=4,
        seed=1,
        directory=directory,
        topics=(TALK, FLOOD),
        proxies=False,
        patience=20.0,  # nobody dies here, however busy the machine is
        round_length=0.5,
        settings=settings,
    )
    async with LiveCluster(config) as cluster:
        for number in cluster.members:
            await cluster.members[number].ask("publish", topics=[TALK], rate=100.0)
        for number in PUBLISHERS:
            await cluster.members[number].ask("publish", topics=[FLOOD], rate=flood_rate, size=1024)
        await asyncio.sleep(seconds / 2)
        await _latencies(cluster)
        await asyncio.sleep(seconds)
        before = await _latencies(cluster)
        memory = {number: status["memory"] for number, status in (await cluster.statuses()).items()}
        await cluster.members[NEVER_READS].ask("pause", topic=FLOOD)
        await asyncio.sleep(seconds / 2)
        await _latencies(cluster)
        await asyncio.sleep(seconds)
        during, statuses = await _latencies(cluster), await cluster.statuses()
        growth = {number: status["memory"] - memory[number] for number, status in statuses.items()}
        await cluster.members[NEVER_READS].ask("resume", topic=FLOOD)
        await cluster.drain(timeout=60.0)
        ended = await cluster.statuses()
        same = len({status["delivered"] for status in ended.values()}) == 1
        return Found(before, during, growth, sum(one["unstable"] for one in statuses.values()), same)


async def _latencies(cluster: LiveCluster) -> list[float]:
    """Of the talk since the last time, at all nodes."""
    answers = [await member.ask("latencies", topic=TALK) for member in cluster.living]
    return sorted(one for answer in answers for one in answer["latencies"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=500.0, help="flood messages of 1 KiB per second and publisher")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(measure(Path(directory), options.seconds, options.rate))
    heard = f"{len(found.before):,}, beside who never reads {len(found.during):,}"
    print(f"messages of the talk that were heard: {heard}: {len(found.during) / len(found.before):.2f}×")
    for share in (0.5, 0.99):
        before, during = found.p(share)
        ratio = f"{during / before:.2f}×"
        print(f"talk p{share * 100:g}: {before * 1e3:.2f} ms, beside who never reads {during * 1e3:.2f} ms: {ratio}")
    grown = ", ".join(f"node {node} {size / 2**20:+.1f} MiB" for node, size in found.growth.items())
    print(f"memory: {grown}; budgets {PEER_BUDGET >> 20} MiB per peer, {TOPIC_BUDGET >> 20} MiB per topic")
    print(f"publishers hold {found.held:,} messages; after reading again everything arrived: {found.caught_up}")


if __name__ == "__main__":
    main()
