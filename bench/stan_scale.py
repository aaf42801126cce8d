"""StaN at scale: time and memory of a round, how both grow, and the same as a Spark job beside the kernel.

Universes have `--topics-per-user` topics per process on average, with the shape of Wikipedia's (`cubecast workload
matched`). The kernel is timed in one process: CPU of a slot and round at each size, which is flat where rounds grow
linearly. Then the largest size as a whole, from the table on disk to links before and after and what a thousand graphs
are like: by the kernel in two processes, and as `cubecast workload overlays` on Spark. Each Spark master runs in a
process of its own; its time is the job's, without the start of the session.

    python -m bench.stan_scale --users 10000 100000 1000000 --masters 'local[2]' 'local-cluster[2,1,4096]'
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark

from bench.processes import PeakMemory, own_seconds, resident_sizes
from cubecast.experiments.stan.overlays import Rounds, divide, write_overlays
from cubecast.experiments.stan.universes import matched
from cubecast.pipeline.session import spark_session
from cubecast.pipeline.workloads.synthetic import LIKE, Shape, matched_subscriptions
from cubecast.sim.kernels.stan import Overlays

SEED = 1
CORES = 2
MEMBERS = 90
"""Of a topic, on average, by the power law of sizes."""


def shape_of(users: int, per_user: float) -> Shape:
    return Shape(users, round(users * per_user / MEMBERS), *LIKE["wikipedia"])


def rounds_of(users: int, per_user: float, rounds: int) -> float:
    """Seconds of CPU per slot and round, the first ones included; prints them."""
    drawn = matched(SEED, shape_of(users, per_user))
    slots = len(drawn.members)
    before = sum(resident_sizes().values())
    overlays = Overlays(drawn.first, drawn.members, seed=SEED)
    took = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        overlays.round()
        took.append((time.perf_counter() - wall, time.process_time() - cpu))
    memory = (sum(resident_sizes().values()) - before) / 1e6
    per_slot = [1e6 * cpu / slots for _, cpu in took]
    print(
        f"{users:>10,} users {drawn.topics:>8,} topics {slots:>11,} slots  "
        f"round {np.mean([wall for wall, _ in took]):7.2f} s  "
        f"CPU per slot: first {per_slot[0]:.2f} µs, last {per_slot[-1]:.2f}, mean {np.mean(per_slot):.2f}  "
        f"{memory:8,.0f} MB, {1e6 * memory / slots:.0f} bytes per slot",
        flush=True,
    )
    return float(np.mean(per_slot))


def kernel_from_table(table: Path, rounds: int) -> dict[str, float]:
    """The whole of it in two processes, without Spark: each reads the table and owns half of the topics."""
    wall, cores = time.perf_counter(), own_seconds()
    with PeakMemory() as memory, ProcessPoolExecutor(CORES) as pool:
        parts = list(pool.map(_half, [table] * CORES, range(CORES), [rounds] * CORES))
        links = [_different([part[number] for part in parts]) for number in (0, 1)]
        cores = own_seconds() - cores
    return {
        "seconds": time.perf_counter() - wall,
        "cores": cores,
        "kernel": max(part[2] for part in parts),
        "memory": memory.here + memory.below,
        "before": float(np.mean(links[0])),
        "after": float(np.mean(links[1])),
    }


def _half(table: Path, which: int, rounds: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Pairs (process, neighbour), each once, before and after; seconds of the rounds."""
    columns = pq.read_table(table, columns=["user", "topic"])
    (process, users), (topic, _) = (_numbered(columns[name].combine_chunks()) for name in ("user", "topic"))
    del columns
    sizes = np.bincount(topic)
    division = divide(sizes, users, CORES, len(process))
    low, high = division.topics[which], division.topics[which + 1]
    inside = (topic >= low) & (topic < high)
    pairs = np.sort(topic[inside] << 32 | process[inside])
    first = np.concatenate([[0], sizes[low:high].cumsum()])
    overlays = Overlays(first, (pairs & 0xFFFFFFFF).astype(np.int32), seed=SEED, offset=division.slots[which])
    before = _links(overlays)
    started = time.perf_counter()
    for _ in range(rounds):
        overlays.round()
    took = time.perf_counter() - started
    overlays.mend()
    overlays.measures(np.unique(np.linspace(0, overlays.topics - 1, 500).astype(np.int64)), 16)
    return before, _links(overlays), took


def _numbered(names: pa.StringArray) -> tuple[np.ndarray, int]:
    """Numbers in the order of names, and how many different ones there are."""
    found = names.dictionary_encode()
    place = np.empty(len(found.dictionary), np.int64)
    place[pc.sort_indices(found.dictionary).to_numpy()] = np.arange(len(place))
    return place[found.indices.to_numpy()], len(place)


def _links(overlays: Overlays) -> np.ndarray:
    process = overlays.world.process.astype(np.int64)
    slots = np.arange(len(process))
    return np.unique(np.repeat(process, overlays.world.size) << 32 | overlays.neighbours(slots))


def _different(parts: list[np.ndarray]) -> np.ndarray:
    return np.unique(np.unique(np.concatenate(parts)) >> 32, return_counts=True)[1]


def on_spark(table: Path, master: str, rounds: int) -> dict[str, float]:
    """In a process of its own, because a session is a process's for good."""
    with tempfile.TemporaryDirectory() as home:
        for entry in Path(pyspark.__file__).parent.iterdir():
            if entry.name != "work":  # workers of a cluster write beneath SPARK_HOME
                (Path(home) / entry.name).symlink_to(entry)
        command = [sys.executable, "-m", "bench.stan_scale", "--job", str(table), master, str(rounds)]
        done = subprocess.run(command, env=os.environ | {"SPARK_HOME": home}, stdout=subprocess.PIPE, check=True)
        shutil.rmtree(Path(home) / "work", ignore_errors=True)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def job(table: Path, master: str, rounds: int) -> None:
    conf = [("spark.executor.memory", "1500m"), ("spark.driver.memory", "1500m"), ("spark.sql.shuffle.partitions", "4")]
    spark = spark_session(master, conf)
    spark.range(10).count()
    wall, cores = time.perf_counter(), own_seconds()
    with tempfile.TemporaryDirectory() as place, PeakMemory() as memory:
        facts = write_overlays(spark, table, Rounds(rounds=rounds, seed=SEED), Path(place) / "out", _tell)
    seconds, cores = time.perf_counter() - wall, own_seconds() - cores
    spark.stop()
    links = {"before": facts["links"]["0"], "after": facts["links"][str(rounds)]}
    print(json.dumps({"seconds": seconds, "cores": cores, "memory": memory.here + memory.below} | links))


def _tell(stage: str) -> None:
    print(f"  {time.perf_counter():.0f} {stage}", file=sys.stderr, flush=True)


def make_table(place: Path, shape: Shape) -> Path:
    """Written by Spark, as `cubecast workload matched` does, in a process that ends."""
    table = place / "table"
    spark = spark_session(f"local[{CORES}]")
    matched_subscriptions(spark, shape, SEED).write.parquet(str(table))
    spark.stop()
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--topics-per-user", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--masters", nargs="*", default=["local[2]"])
    parser.add_argument("--job", nargs=3, metavar=("TABLE", "MASTER", "ROUNDS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.job:
        job(Path(options.job[0]), options.job[1], int(options.job[2]))
        return
    print(f"load {os.getloadavg()[0]:.1f}")
    warm = Overlays(np.array([0, 3]), np.array([0, 1, 2], np.int32), seed=1)
    warm.round()
    warm.measures()
    warm.physical_links()  # all of them compile
    costs = [rounds_of(users, options.topics_per_user, options.rounds) for users in options.users]
    for users, cost in zip(options.users[1:], costs[1:], strict=True):
        print(f"CPU per slot, {users:,} users over {options.users[0]:,}: {cost / costs[0]:.2f}")
    if options.masters:
        beside_spark(shape_of(options.users[-1], options.topics_per_user), options.rounds, options.masters)
    print(f"load {os.getloadavg()[0]:.1f}")


def beside_spark(shape: Shape, rounds: int, masters: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        table = make_table(Path(place), shape)
        kernel = kernel_from_table(table, rounds)
        print(f"from the table to links and graphs, {shape.processes:,} users, {rounds} rounds:")
        report("kernel, 2 processes", kernel, kernel)
        for master in masters:
            report(master, on_spark(table, master, rounds), kernel)


def report(name: str, found: dict[str, float], kernel: dict[str, float]) -> None:
    print(
        f"  {name:26} {found['seconds']:7.1f} s ({found['seconds'] / kernel['seconds']:.2f})  "
        f"{found['cores']:7.1f} core s ({found['cores'] / kernel['cores']:.2f})  {found['memory'] / 1e6:8,.0f} MB  "
        f"links {found['before']:.2f} → {found['after']:.2f}"
        + (f"  rounds alone {found['kernel']:.1f} s" if "kernel" in found else ""),
        flush=True,
    )


if __name__ == "__main__":
    main()
