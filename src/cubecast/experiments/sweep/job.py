"""A Spark job in a thread of its own, so that Ctrl-C finds the main thread waiting and not talking to the JVM.

PySpark answers an interrupt by calling the JVM to cancel all jobs. When the main thread is in the middle of a call
itself, that second call breaks the connection and fills the terminal with tracebacks.
"""

import threading
from typing import Any

from pyspark import RDD


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
