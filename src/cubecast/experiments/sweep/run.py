"""Runs a sweep on Spark. The driver plans, waits, and gathers; every point is a task."""

import gc
import os
import platform
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark import RDD, TaskContext
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from cubecast.errors import CubecastError
from cubecast.experiments.sweep.grid import Parameters, Point, Sweep
from cubecast.experiments.sweep.kinds import Batch, Figures, PointKind, batches, checked_points, find_kind
from cubecast.experiments.sweep.progress import Listener, Snapshot, Watch
from cubecast.experiments.sweep.store import About, SweepStore, column, means, row_of, write_results

# What happens on an executor: run the points of one batch, each result in its file before the next begins.

OK, ERROR = "ok", "error"


@dataclass(frozen=True)
class Work:
    """All a task needs to know besides its batch. Travels to the executors, so plain values only."""

    directory: str
    kind: str
    keep_traces: bool
    search_path: tuple[str, ...]
    """Where the driver finds modules: a kind of point in a user's own module must be found by workers too."""


def run_batches(work: Work, batches: Iterable[Batch]) -> Iterator[str]:
    """A Spark task: one batch, unless partitions were merged."""
    for batch in batches:
        yield from run_batch(work, batch)


def run_batch(work: Work, batch: Batch) -> Iterator[str]:
    """The ids of the points that were run here. On a second attempt, what the first one finished is left alone."""
    sys.path.extend(path for path in work.search_path if path not in sys.path)
    store = SweepStore(Path(work.directory))
    kind = find_kind(work.kind)
    _settle()
    for point in batch:
        if not store.is_finished(point.id):
            store.begin(point, _worker())
            store.finish(point, _result(work, store, kind, point))
            yield point.id


@cache
def _settle() -> None:
    """Once per worker: Spark's daemon collects garbage after every task, and need not look at all modules each time."""
    gc.collect()
    gc.freeze()


def _result(work: Work, store: SweepStore, kind: PointKind, point: Point) -> dict[str, Any]:
    started, wall, cpu = datetime.now(UTC), time.perf_counter(), time.process_time()
    outcome: dict[str, Any]
    try:
        outcome = {"status": OK, "error": None, "figures": _figures(work, store, kind, point)}
    except (OSError, MemoryError):
        # The machine's fault, not the point's: another attempt may succeed.
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        outcome = {"status": ERROR, "error": text, "figures": {}, "traceback": traceback.format_exc()}
    return {
        "id": point.id,
        "run": point.run,
        "seed": point.seed,
        **outcome,
        "timing": {
            "started": started.isoformat(timespec="milliseconds"),
            "seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - cpu,
            "attempt": _attempt(),
            "worker": _worker(),
        },
    }


def _figures(work: Work, store: SweepStore, kind: PointKind, point: Point) -> Figures:
    parameters = {**point.parameters, "seed": point.seed}
    if not work.keep_traces or kind.trace is None:
        return kind.run(parameters)
    directory = store.temporary_trace(point.id)
    try:
        figures = kind.trace(parameters, directory)
        store.keep_trace(point.id, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return figures


def _attempt() -> int:
    context = TaskContext.get()
    return context.attemptNumber() if context is not None else 0


def _worker() -> str:
    return f"{platform.node()}:{os.getpid()}"


# The driver.

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
