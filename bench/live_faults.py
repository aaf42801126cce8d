"""Sixteen live nodes under load, seven of them killed one after another: what do the survivors notice?

Prints, per kill, how long the longest pause in publishing at any survivor was, against two detection periods, and in
the end the verdict on everything that was published and delivered. `--spark` lets the pipeline judge the trace too.
"""

import argparse
import asyncio
import json
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from random import Random

from cubecast.check import check_directory
from cubecast.experiments.live_faults.cluster import ClusterConfig, LiveCluster
from cubecast.experiments.live_faults.run import collected

PATIENCE = 3.0
ROUND = 0.5


class Watch:
    """How long was this process itself not run? On a machine that is short of processors all pauses grow."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._task = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.02)
            self.longest = max(self.longest, loop.time() - before - 0.02)

    def since(self) -> float:
        longest, self.longest = self.longest, 0.0
        return longest


def cpu_seconds(statuses: dict) -> float:
    return sum(status["cpu_seconds"] for status in statuses.values())


async def kill_one_after_another(config: ClusterConfig, total_rate: float, kills: int, spacing: float) -> list:
    """(node, time) of every kill, in the members' clock, which is this machine's."""
    killed = []
    random = Random(config.seed)
    async with LiveCluster(config) as cluster:
        await cluster.publish(total_rate / config.members)
        loop = asyncio.get_running_loop()
        await asyncio.sleep(spacing)
        watch = Watch()
        for node in random.sample(range(config.members), kills):
            watch.since()
            cluster.kill(node)
            killed.append((node, loop.time()))
            before = cpu_seconds(await cluster.statuses())
            took = await cluster.until_together([member.number for member in cluster.living], timeout=60.0)
            used = (cpu_seconds(await cluster.statuses()) - before) / (loop.time() - killed[-1][1])
            lag = f"they used {used:.2f} processors, this process once waited {watch.since():.2f} s for one"
            print(f"  node {node} killed; {took:.2f} s later all survivors live without it; {lag}", flush=True)
            await asyncio.sleep(spacing)
        await cluster.drain(timeout=60.0)
        statuses = await cluster.statuses()
        await cluster.conclude()
    again = [number for number, status in statuses.items() if status["incarnation"]]
    print(f"  {len(statuses)} survivors; {len(again)} of them had to begin a new incarnation {again}")
    print(f"  messages that nobody published like that: {sum(status['wrong'] for status in statuses.values())}")
    return killed


def pauses(config: ClusterConfig, killed: list) -> dict:
    """Per kill, the longest time between two publications of one survivor that begins before the next kill."""
    dead = {node for node, _ in killed}
    longest = defaultdict(float)
    for path in sorted(config.journals.glob("node-*.jsonl")):
        if int(path.name.split("-")[1]) in dead:
            continue
        lines = (json.loads(line) for line in path.read_text().splitlines())
        times = [line[1] for line in lines if line[0] == "publish"]
        for before, after in pairwise(times):
            kill = next((node for node, at in reversed(killed) if at <= after), None)
            if kill is not None:
                longest[kill] = max(longest[kill], after - before)
    return longest


def verdict(config: ClusterConfig, spark: bool) -> None:
    trace = collected(config, "kill-seven")
    report = check_directory(trace)
    print(f"  reference checker: {report.verdict}, {report.messages:,} messages, {report.deliveries:,} deliveries")
    for violation in report.witnesses:
        print(f"    {violation.promise}: {violation.reason}")
    if spark:
        from cubecast.pipeline.session import spark_session
        from cubecast.pipeline.verify import verify

        print(f"  Spark: {[one.verdict for one in verify(spark_session(None), [trace]).runs]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--kills", type=int, default=7)
    parser.add_argument("--rate", type=float, default=2000.0, help="messages per second of all nodes together")
    parser.add_argument("--spacing", type=float, default=2.0, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark", action="store_true", help="verify with Spark too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        config = ClusterConfig(
            members=options.nodes,
            seed=options.seed,
            directory=Path(directory),
            proxies=False,
            patience=PATIENCE,
            round_length=ROUND,
            retry=0.5,
            start_timeout=120.0,
        )
        print(f"seed {options.seed}: {options.nodes} nodes, {options.rate:g} messages/s, {options.kills} kills")
        killed = asyncio.run(kill_one_after_another(config, options.rate, options.kills, options.spacing))
        found = pauses(config, killed)
        worst, limit = max(found.values()), 2 * config.detection_period
        listed = ", ".join(f"{node}: {found[node]:.2f}" for node, _ in killed)
        print(f"  longest pause in publishing at any survivor, by kill: {listed} s")
        print(
            f"  worst {worst:.2f} s; two detection periods are {limit:.2f} s: {'kept' if worst <= limit else 'MISSED'}"
        )
        verdict(config, options.spark)


if __name__ == "__main__":
    main()
