"""Eight nodes, churn and accidents for half an hour: is what processes take up flat?

    python -m bench.attack.soak                 thirty minutes
    python -m bench.attack.soak --minutes 10

Half of the nodes live all the time, behind links that are delayed, held and broken; the others are killed, paused and
started again; clients come, subscribe and go. Once a minute the living say what they take up: resident memory,
descriptors, tasks. In the end everything must come to rest, the applications' records must be right, and of each node
that lived all the time the last third of the samples must not be above the third before it by more than a little.

A node never forgets the name of a topic, so the first clients that subscribe to ten thousand of them at a node cost
it some 40 MiB, once. The first time a node with so many topics comes back from having been held faulty it asks about
all of them at once, and the allocator keeps what that took: some 20 to 30 MiB, once. Both happen to each of these nodes
before the clock runs. Whatever is left behind each time shows after that.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import mean
from typing import Any

from bench.attack.accidents import APPLICATION, settled
from bench.attack.clients import leaving
from bench.attack.rows import Row, table
from cubecast.addresses import Address
from cubecast.experiments.live_faults.cluster import ClusterConfig, LiveCluster, NotAtRest
from cubecast.experiments.live_faults.link_proxy import Conditions
from cubecast.experiments.live_faults.recorded import judge, load

MEMBERS, STEADY, RATE, PATIENCE = 8, 4, 10.0, 3.0
REST = 240.0
"""Seconds; waves about ten thousand topics that were given up take their time on a busy machine."""
ALLOWED = {"memory": 6.0, "descriptors": 8.0, "tasks": 8.0}
"""MiB and numbers by which the last third may be above the one before."""
Sample = dict[str, float]


async def accident(cluster: LiveCluster, chance: random.Random) -> str:
    """One of them, over when this returns."""
    churning, others = chance.randrange(STEADY, MEMBERS), chance.sample(range(MEMBERS), 2)
    kind = chance.choice(("restart", "restart", "stop", "stall", "delay", "reset", "clients"))
    match kind:
        case "restart":
            cluster.kill(churning)
            await cluster.members[churning].ended()
            await asyncio.sleep(chance.uniform(0.1, 3))
            await cluster.start_member(churning)
            await cluster.publish(RATE, [churning])
        case "stop":
            cluster.stop(churning)
            await asyncio.sleep(chance.uniform(0.2, 2) * PATIENCE)
            cluster.resume(churning)
        case "stall" | "delay":
            conditions = Conditions(standing=True) if kind == "stall" else Conditions(delay=chance.uniform(0.05, 0.5))
            cluster.impair(*others, conditions)
            await asyncio.sleep(chance.uniform(0.2, 1.5) * PATIENCE)
            cluster.heal_link(*others)
        case "reset":
            for _ in range(10):
                cluster.reset(*others)
                await asyncio.sleep(0.1)
        case _:
            await come_and_go(cluster.addresses[chance.randrange(STEADY)], chance)
    return kind


async def come_and_go(at: Address, chance: random.Random) -> None:
    with suppress(OSError):
        await leaving(at, chance)


async def rest(cluster: LiveCluster) -> None:
    with suppress(NotAtRest):  # a busy machine takes its time; who is still at it is seen in the samples
        await cluster.drain(REST)


async def sample(cluster: LiveCluster) -> dict[int, Sample]:
    found: dict[int, Sample] = {}
    for number in range(STEADY):
        pong, size = await cluster.members[number].ask("ping"), await cluster.members[number].ask("size")
        found[number] = {"memory": pong["memory"] / (1 << 20), **{k: size[k] for k in ("descriptors", "tasks")}}
    return found


def growth(samples: list[dict[int, Sample]], number: int, kind: str) -> float:
    third = max(1, len(samples) // 3)
    values = [one[number][kind] for one in samples]
    return mean(values[-third:]) - mean(values[-2 * third : -third] or values[:1])


async def soak(minutes: float, seed: int, directory: Path) -> tuple[Row, list[dict[int, Sample]]]:
    chance, row, samples = random.Random(seed), Row("soak"), []
    config = ClusterConfig(
        members=MEMBERS, seed=seed, directory=directory, module=APPLICATION, patience=PATIENCE, round_length=0.5,
        topics=("talk.0", "talk.1"), retry=0.5, start_timeout=REST,
    )  # fmt: skip
    happened: dict[str, int] = {}
    async with LiveCluster(config) as cluster:
        first = await sample(cluster)
        print(f"at first   {shown(first)}", flush=True)
        for number in range(STEADY):
            await come_and_go(cluster.addresses[number], chance)
            await rest(cluster)
        for number in range(STEADY):
            cluster.stop(number)
            await asyncio.sleep(1.5 * PATIENCE)
            cluster.resume(number)
            await rest(cluster)
        await cluster.publish(RATE)
        began = time.monotonic()
        step = min(60.0, minutes * 60 / 12)
        while (passed := time.monotonic() - began) < minutes * 60:
            kind = await accident(cluster, chance)
            happened[kind] = happened.get(kind, 0) + 1
            await asyncio.sleep(chance.uniform(0.5, 3))
            if passed >= step * len(samples):
                samples.append(await sample(cluster))
                print(f"{passed / 60:5.1f} min  {shown(samples[-1])}", flush=True)
        await settled(cluster, row, REST)
        row.seconds = time.monotonic() - began
    row.counts = ", ".join(f"{many} × {kind}" for kind, many in sorted(happened.items()))
    row.findings = judge(load(config.records))
    return row, samples


def shown(one: dict[int, Sample]) -> str:
    return "  ".join(
        f"node {number}: {take['memory']:.1f} MiB, {take['descriptors']:.0f} descriptors, {take['tasks']:.0f} tasks"
        for number, take in one.items()
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.minutes:g} minutes, {MEMBERS} nodes", flush=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        row, samples = asyncio.run(soak(options.minutes, options.seed, Path(directory)))
    differences: list[tuple[int, str, Any]] = [
        (number, kind, growth(samples, number, kind)) for number in range(STEADY) for kind in ALLOWED
    ]
    for number, kind, more in differences:
        print(f"node {number}: {kind} {more:+.1f}")
        if more > ALLOWED[kind]:
            row.fault(f"node {number} takes up more and more {kind}: {more:+.1f} from one third to the next")
    print(f"\n{row.counts}\n" + "\n".join(f"    {note}" for note in [*row.notes, *row.findings.witnesses]))
    print(table([row]))
    return 1 if row.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
