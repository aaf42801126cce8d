"""How far a sweep is while it runs: points finished, points running and since when, Spark tasks and lost attempts."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias

from pyspark import StatusTracker

from cubecast.experiments.sweep.store import Running, SweepStore

SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True)
class Snapshot:
    total: int
    finished: int
    running: tuple[Running, ...]
    """Longest first: the head of this list is the straggler."""
    at: float
    tasks: int = 0
    tasks_finished: int = 0
    tasks_failed: int = 0


Listener: TypeAlias = Callable[[Snapshot], None]


class Watch:
    """Looks from a thread of its own while the driver waits for Spark."""

    def __init__(
        self, store: SweepStore, points: set[str], tracker: StatusTracker, group: str, listener: Listener
    ) -> None:
        self._store = store
        self._points = points
        self._tracker = tracker
        self._group = group
        self._listener = listener
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look_again, name="sweep-progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopped.set()
        self._thread.join()

    def _look_again(self) -> None:
        while not self._stopped.wait(SECONDS_BETWEEN_LOOKS):
            self._listener(self.look())
        self._listener(self.look())

    def look(self) -> Snapshot:
        tasks, finished, failed = self._tasks()
        return Snapshot(
            len(self._points),
            len(self._points & self._store.finished()),
            tuple(self._store.running()),
            time.time(),
            tasks,
            finished,
            failed,
        )

    def _tasks(self) -> tuple[int, int, int]:
        """Of all stages of our jobs that Spark still knows: tasks, finished ones, failed attempts."""
        jobs = [self._tracker.getJobInfo(job) for job in self._tracker.getJobIdsForGroup(self._group)]
        stages = [self._tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        known = [stage for stage in stages if stage]
        return (
            sum(stage.numTasks for stage in known),
            sum(stage.numCompletedTasks for stage in known),
            sum(stage.numFailedTasks for stage in known),
        )
