"""Runs a sweep on Spark. The driver plans, waits, and gathers; every point is a task."""

import sys
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark import RDD
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from cubecast.errors import CubecastError
from cubecast.experiments.sweep.grid import Parameters, Point, Sweep
from cubecast.experiments.sweep.kinds import Batch, batches, checked_points, find_kind
from cubecast.experiments.sweep.progress import Listener, Snapshot, Watch
from cubecast.experiments.sweep.results import About, column, means, row_of, write_results
from cubecast.experiments.sweep.store import SweepStore
from cubecast.experiments.sweep.task import OK, Work, run_batches

# A Spark job in a thread of its own, so that Ctrl-C finds the main thread waiting and not talking to the JVM.
#
# PySpark answers an interrupt by calling the JVM to cancel all jobs. When the main thread is in the middle of a call
# itself, that second call breaks the connection and fills the terminal with tracebacks.


class Job:
    """Starts at once; `result` waits for the end and can be interrupted."""

    def __init__(self, tasks: "RDD[Any]", group: str) -> None:
        self._tasks = tasks
        self._group = group
        self._error: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._collect, name="sweep-job", daemon=True)
        self._thread.start()

    def result(self) -> Exception | None:
        """What Spark raised, if it did."""
        self._ended.wait()
        return self._error

    def join(self) -> None:
        self._thread.join()

    def _collect(self) -> None:
        try:
            # A job group belongs to the thread that sets it.
            context = self._tasks.context
            context.setJobGroup(self._group, "sweep", interruptOnCancel=True)
            self._tasks.collect()
        except Exception as error:
            self._error = error
        finally:
            self._ended.set()


MOST_NAMED = 5


class SweepFailedError(CubecastError):
    """Spark gave up on a task. What was finished is kept; the sweep can be taken up again."""


@dataclass(frozen=True)
class Outcome:
    """What became of a sweep."""

    sweep: str
    seed: int
    points: int
    executed: int
    reused: int
    errors: int
    retried: int
    wall_seconds: float
    results: str
    slowest: list[dict[str, Any]]
    failed: list[dict[str, Any]]
    means: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _silent(_: Snapshot) -> None:
    pass


def prepare(sweep: Sweep, directory: Path) -> None:
    """Refuse what cannot run and make the directory ready: quick, so that it can be done before Spark is started."""
    checked_points(sweep)
    _store(directory).open(sweep)


def waiting_points(sweep: Sweep, directory: Path) -> list[Point]:
    """Those without a result in the directory."""
    finished = _store(directory).finished()
    return [point for point in sweep.expand() if point.id not in finished]


def _store(directory: Path) -> SweepStore:
    """Absolute: workers need not share the driver's working directory."""
    return SweepStore(directory.absolute())


def run_sweep(spark: SparkSession, sweep: Sweep, directory: Path, listener: Listener = _silent) -> Outcome:
    """Run what is not finished yet, then write the results. An interrupt leaves a directory to resume from."""
    began = time.perf_counter()
    points, complete = checked_points(sweep)
    store = _store(directory)
    store.open(sweep)
    waiting = waiting_points(sweep, directory)
    kind = find_kind(sweep.point)
    if waiting:
        work = Work(str(store.directory), sweep.point, sweep.keep_traces, tuple(sys.path))
        tasks = batches(waiting, kind, spark.sparkContext.defaultParallelism)
        _execute(spark, work, tasks, {point.id for point in points}, listener)
    missing = {point.id for point in waiting} - store.finished()
    if missing:
        raise SweepFailedError(
            f"{len(missing)} of {len(waiting)} points left no result in {store.directory}; "
            "do driver and executors see the same directory?"
        )
    rows = _rows(sweep, points, complete, store)
    about = About(sweep.name, sweep.seed, [column(name) for name in sweep.varied()], list(kind.headline))
    write_results(rows, store.results, about)
    return _outcome(about, points, rows, len(waiting), time.perf_counter() - began, store)


def _execute(spark: SparkSession, work: Work, tasks: list[Batch], points: set[str], listener: Listener) -> None:
    """One partition per batch, in order. An RDD, as no column is involved: workers need not load Arrow and pandas."""
    context, store = spark.sparkContext, SweepStore(Path(work.directory))
    group = f"sweep-{uuid4()}"
    job = Job(context.parallelize(tasks, len(tasks)).mapPartitions(partial(run_batches, work)), group)
    with Watch(store, points, context.statusTracker(), group, listener):
        try:
            error = job.result()
        except KeyboardInterrupt:
            context.cancelJobGroup(group)
            job.join()
            raise
    if error is not None:
        raise SweepFailedError(_told(store, error)) from error


def _told(store: SweepStore, error: Exception) -> str:
    running = ", ".join(one.point for one in store.running()) or "none"
    return f"Spark gave up: {_reason(error)} (points running: {running}); finished points are kept, run it again"


def _reason(error: Exception) -> str:
    """The line that names the cause: the last of a Python traceback, or what the JVM's first exception says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if isinstance(error, PythonException):
        return lines[-1]
    told = next((line for line in lines if "Exception: " in line), lines[0])
    return told.rpartition("Exception: ")[2].partition(". ")[0]


def _rows(
    sweep: Sweep, points: list[Point], complete: dict[str, Parameters], store: SweepStore
) -> list[dict[str, Any]]:
    results = store.read(points)
    return [
        row_of(sweep.name, complete[point.combination], result) for point, result in zip(points, results, strict=True)
    ]


def _outcome(
    about: About, points: list[Point], rows: list[dict[str, Any]], executed: int, seconds: float, store: SweepStore
) -> Outcome:
    labels = {point.id: point.label for point in points}
    slowest = sorted(rows, key=lambda row: -row["seconds"])[:MOST_NAMED]
    failed = [row for row in rows if row["status"] != OK]
    return Outcome(
        sweep=about.sweep,
        seed=about.seed,
        points=len(points),
        executed=executed,
        reused=len(points) - executed,
        errors=len(failed),
        retried=sum(row["attempt"] > 0 for row in rows),
        wall_seconds=round(seconds, 3),
        results=str(store.results),
        slowest=[{"point": labels[row["id"]], "seconds": round(row["seconds"], 3)} for row in slowest],
        failed=[{"point": labels[row["id"]], "error": row["error"]} for row in failed[:MOST_NAMED]],
        means=means(rows, about.varied, about.headline),
    )
