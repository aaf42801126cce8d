"""Does a sweep of 200 small simulations keep the cores busy, survive a killed Python worker, and resume?

Timed from handing the plan to Spark to the finished table; starting the session and the first Python workers is not
counted (a sweep of a few points runs before). What other programs took of the cores meanwhile is measured too: on a
machine that is not quiet the first number cannot reach its target.

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

from cubecast.experiments.sweep.grid import Sweep
from cubecast.experiments.sweep.progress import Snapshot
from cubecast.experiments.sweep.run import Outcome, run_sweep
from cubecast.pipeline.session import cores, local_master, spark_session

TARGET = 0.85


def simulations(name: str, runs: int) -> Sweep:
    """Four combinations, about 0.1 to 0.6 s each on a quiet core."""
    grid = {"protocol": ["vcube-ps", "srpt"], "nodes": [128, 64]}
    return Sweep(name, grid, parameters={"publishers": "100%", "messages": 2}, runs=runs)


def machine_busy_seconds() -> float:
    """Core seconds that anything on this machine has been busy since it started (Linux)."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    outcome: Outcome
    wall: float
    machine: float
    rows: list[dict[str, float]]

    def show(self) -> None:
        available = cores() * self.wall
        cpu = sum(row["cpu_seconds"] for row in self.rows) / available
        occupied = sum(row["seconds"] for row in self.rows) / available
        machine = self.machine / available
        print(f"{self.outcome.executed} simulations in {self.wall:.1f} s on {cores()} cores")
        print(f"  cores computing simulations   {cpu:6.1%} of the time (target {TARGET:.0%})")
        print(f"  cores holding a simulation    {occupied:6.1%} of the time")
        print(f"  machine busy with anything    {machine:6.1%} of the time; load average {os.getloadavg()[0]:.1f}")
        print(f"  {'reached' if cpu >= TARGET else 'NOT reached'}")


def measure(spark: SparkSession, sweep: Sweep, directory: Path) -> Measured:
    machine, began = machine_busy_seconds(), time.perf_counter()
    outcome = run_sweep(spark, sweep, directory)
    wall, machine = time.perf_counter() - began, machine_busy_seconds() - machine
    return Measured(
        outcome, wall, machine, pq.read_table(outcome.results, columns=["seconds", "cpu_seconds"]).to_pylist()
    )


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
    spark = spark_session(local_master())
    with tempfile.TemporaryDirectory() as place:
        run_sweep(spark, simulations("warm-up", 2), Path(place, "warm-up"))
        measure(spark, simulations("busy", options.runs), Path(place, "busy")).show()
        survived = through_trouble(spark, simulations("trouble", options.runs), Path(place, "trouble"))
    if not survived:
        sys.exit("a point was lost or run again, or the trouble did not happen")


if __name__ == "__main__":
    main()
