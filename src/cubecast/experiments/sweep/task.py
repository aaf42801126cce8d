"""What happens on an executor: run the points of one batch, each result in its file before the next begins."""

import gc
import os
import platform
import shutil
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from cubecast.experiments.sweep.grid import Point
from cubecast.experiments.sweep.kinds import Batch, Figures, PointKind, find_kind
from cubecast.experiments.sweep.store import SweepStore

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
