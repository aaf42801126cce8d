"""A driver, and its workers, that keep Spark's contract with the format's own readers and writers, without a Java.

As Spark does it: a batch's offsets are on the disk before it is read, tasks are tried four times, rows of an attempt
count when all of them are there, then the batch is committed; what was planned and not committed is read again.
Drivers come from a server that has imported everything, and workers are forks of them, so that a life costs little and
can be taken often.
"""

import json
import multiprocessing
import os
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadMaxRows

from cubecast.spark.logs import Task, read_task
from cubecast.spark.options import read_options, write_options
from cubecast.spark.sink import TopicStream
from cubecast.spark.stream import LogStream

TOPIC = "t"
ATTEMPTS = 4
OPTIONS = {"topics": TOPIC, "pollSeconds": "0", "maxDelay": "1", "rowsPerPartition": "800"}
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload([__name__])
forks = multiprocessing.get_context("fork")


def start(work: Any, directory: Path, nodes: str, most: int, lies: bool = False) -> "Life":
    ours, theirs = processes.Pipe()
    process = processes.Process(target=work, args=(theirs, directory, nodes, most, lies), daemon=False)
    process.start()
    theirs.close()
    return Life(process, ours)


class Life:
    """One of a driver: what it says until it is killed."""

    def __init__(self, process: ForkServerProcess, told: Connection) -> None:
        self._process, self._told = process, told

    def next(self, timeout: float) -> tuple[str, Any] | None:
        try:
            return self._told.recv() if self._told.poll(timeout) else None
        except EOFError:
            return None

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._told.close()


def read_batches(told: Connection, directory: Path, nodes: str, most: int, lies: bool) -> None:
    """Micro-batches out of the topic until killed; who lies calls a batch done before it has read it."""
    while True:
        stream = LogStream(read_options({**OPTIONS, "nodes": nodes}))
        try:
            while True:
                _batch(stream, told, directory, nodes, most, lies)
        except Exception as error:  # it ends a query, which is started again from the same checkpoint
            told.send(("failed", f"{type(error).__name__}: {error}"))
        finally:
            stream.stop()


def _batch(stream: LogStream, told: Connection, directory: Path, nodes: str, most: int, lies: bool) -> None:
    number = len(list(directory.glob("commit-*")))
    plan = directory / f"offsets-{number}"
    if not plan.exists():
        last = directory / f"offsets-{number - 1}"
        before = json.loads(last.read_text())[1] if number else stream.initialOffset()
        after = stream.latestOffset(before, ReadMaxRows(most))
        if after == before:
            told.send(("idle", number))
            return
        keep(plan, [before, after])
    before, after = json.loads(plan.read_text())
    if lies:
        (directory / f"commit-{number}").touch()
    for place, task in enumerate(stream.partitions(before, after)):
        _run(told, directory / f"rows-{number}-{place:03d}", nodes, task)
    (directory / f"commit-{number}").touch()
    told.send(("committed", number))


def _run(told: Connection, place: Path, nodes: str, task: Task) -> None:
    for _ in range(ATTEMPTS):
        worker = forks.Process(target=read_rows, args=(place, nodes, task))
        worker.start()
        told.send(("worker", worker.pid))
        worker.join()
        if worker.exitcode == 0:
            return
    raise RuntimeError(f"{ATTEMPTS} attempts at {place.name} died")


def read_rows(place: Path, nodes: str, task: Task) -> None:
    names = ("source", "incarnation", "counter", "payload", "gap")
    rows: list[Any] = []
    for batch in read_task(read_options({**OPTIONS, "nodes": nodes}), task):
        columns = [batch.column(name).to_pylist() for name in names]
        rows += [[*one[:3], int(one[3]), one[4]] for one in zip(*columns, strict=True)]
    keep(place, rows)


def write_batches(told: Connection, directory: Path, nodes: str, most: int, lies: bool) -> None:
    """Batches of so many numbers into the topic until killed; who lies has a new producer in each life."""
    options = {"nodes": nodes, "stageLocation": str(directory / "stage"), "producer": "campaign"}
    if lies:
        options |= {"producer": f"campaign-{os.getpid()}", "stageLocation": str(directory / f"stage-{os.getpid()}")}
    while True:
        number = len(list(directory.glob("commit-*")))
        payloads = [b"%d" % one for one in range(number * most, (number + 1) * most)]
        try:
            sink = TopicStream(write_options(options), ["topic", "payload"])
            halves = payloads[: most // 3], payloads[most // 3 :]
            batches = [pa.record_batch([[TOPIC] * len(one), one], names=["topic", "payload"]) for one in halves]
            staged = [sink.write(iter([batch])) for batch in batches]
            told.send(("staged", number))
            sink.commit(staged, number)
            (directory / f"commit-{number}").touch()
            told.send(("committed", number))
        except Exception as error:
            told.send(("failed", f"{type(error).__name__}: {error}"))


def keep(place: Path, what: Any) -> None:
    partial = place.with_name(f".{place.name}.{os.getpid()}")
    with partial.open("w") as file:
        json.dump(what, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(place)
