"""Does a sweep of 200 small simulations keep the cores busy, survive a killed Python worker, and resume?

Timed from handing the plan to Spark to the finished table; starting the session and the first Python workers is not
counted (a sweep of a few points runs before). Counted as simulating is the processor time between the begin and the end
of each point, and nothing else that a worker does. What other programs took meanwhile is measured and left out; core
time that nobody used counts against the sweep. Other programs may use what a waiting sweep leaves, so the waiting is
measured too: how long a simulation was under way, of the wall time of all cores. The session is that of `cubecast
sweep`.

    python -m bench.sweep_busy
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.processes import machine_seconds, own_seconds
from cubecast.experiments.sweep.grid import Sweep
from cubecast.experiments.sweep.progress import Snapshot
from cubecast.experiments.sweep.run import Outcome, run_sweep
from cubecast.pipeline.session import LIGHT_JVM, cores, local_master, spark_session

TARGET = 0.85


def simulations(name: str, runs: int) -> Sweep:
    """Four combinations, about 0.1 to 0.6 s each on a quiet core."""
    grid = {"protocol": ["vcube-ps", "srpt"], "nodes": [128, 64]}
    return Sweep(name, grid, parameters={"publishers": "100%", "messages": 2}, runs=runs)


@dataclass(frozen=True)
class Measured:
    outcome: Outcome
    wall: float
    machine: float
    ours: float
    rows: list[dict[str, float]]

    def show(self) -> None:
        everything = cores() * self.wall
        simulating = sum(row["cpu_seconds"] for row in self.rows)
        others = self.machine - self.ours
        share = simulating / (everything - others)
        held = sum(row["seconds"] for row in self.rows) / everything
        print(f"{self.outcome.executed} simulations in {self.wall:.1f} s on {cores()} cores, of all core time:")
        print(f"  inside simulations            {simulating / everything:6.1%}")
        print(f"  Spark, workers and driver     {(self.ours - simulating) / everything:6.1%}")
        print(f"  other programs                {others / everything:6.1%}")
        print(f"  nobody                        {1 - self.machine / everything:6.1%}")
        print(f"inside simulations, of the core time other programs left: {share:.1%} (target {TARGET:.0%})")
        print(f"time in which a core had a simulation under way: {held:.1%} (target {TARGET:.0%})")
        print("reached" if min(share, held) >= TARGET else "NOT reached")


def measure(spark: SparkSession, sweep: Sweep, directory: Path) -> Measured:
    machine, ours, began = machine_seconds(), own_seconds(), time.perf_counter()
    outcome = run_sweep(spark, sweep, directory)
    wall, machine, ours = time.perf_counter() - began, machine_seconds() - machine, own_seconds() - ours
    rows = pq.read_table(outcome.results, columns=["seconds", "cpu_seconds"]).to_pylist()
    return Measured(outcome, wall, machine, ours, rows)


class Trouble:
    """Kills a Python worker in the middle of a simulation, later interrupts the driver; each once."""

    def __init__(self, points: int) -> None:
        self._kill_at, self._interrupt_at = points // 4, points // 2
        self.killed: str | None = None
        self.interrupted = False

    def __call__(self, snapshot: Snapshot) -> None:
        if self.killed is None and snapshot.finished >= self._kill_at and snapshot.running:
            self.killed = snapshot.running[0].worker
            os.kill(int(self.killed.rpartition(":")[2]), signal.SIGKILL)
        elif self.killed and not self.interrupted and snapshot.finished >= self._interrupt_at:
            self.interrupted = True
            os.kill(os.getpid(), signal.SIGINT)


def through_trouble(spark: SparkSession, sweep: Sweep, directory: Path) -> bool:
    """Kill, interrupt, resume; whether everything was finished and nothing that was finished ran again."""
    trouble = Trouble(len(sweep.expand()))
    with suppress(KeyboardInterrupt):
        run_sweep(spark, sweep, directory, trouble)
    before = {path: path.stat().st_mtime_ns for path in (directory / "points").glob("*.json")}
    outcome = run_sweep(spark, sweep, directory)
    repeated = sum(path.stat().st_mtime_ns != written for path, written in before.items())
    print(f"killed worker {trouble.killed}, then interrupted at {len(before)} of {outcome.points} points")
    print(f"  resumed: {outcome.executed} run, {outcome.reused} found finished, {repeated} of those run again")
    print(f"  points that needed a second attempt: {outcome.retried}; failed: {outcome.errors}")
    return bool(trouble.killed and trouble.interrupted and outcome.retried and not repeated and not outcome.errors)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50, help="of each of four combinations")
    options = parser.parse_args(arguments)
    spark = spark_session(local_master(), jvm=LIGHT_JVM)
    with tempfile.TemporaryDirectory() as place:
        run_sweep(spark, simulations("warm-up", 2), Path(place, "warm-up"))
        measure(spark, simulations("busy", options.runs), Path(place, "busy")).show()
        survived = through_trouble(spark, simulations("trouble", options.runs), Path(place, "trouble"))
    if not survived:
        sys.exit("a point was lost or run again, or the trouble did not happen")


if __name__ == "__main__":
    main()
