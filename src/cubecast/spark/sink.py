"""DataFrames as messages: rows are staged by the tasks and published by the driver when Spark commits the batch.

Tasks are repeated, so what they did must not show; the driver is one, and a batch is committed again after a crash. The
producer's numbers (`cubecast.api.producer`) keep what is published already from being published again.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from cubecast.api.producer import Producer, publish_once
from cubecast.api.sync import LoopThread
from cubecast.errors import BadInput
from cubecast.spark.options import SinkOptions
from cubecast.spark.stage import Manifest, Stage

NEEDED, TAKEN = ("topic", "payload"), ("topic", "payload", "headers")


@dataclass
class Staged(WriterCommitMessage):  # type: ignore[misc]  # PySpark has no types for us
    """What a task tells the driver."""

    file: str
    rows: dict[str, int]


def check_columns(names: Sequence[str]) -> None:
    missing = [name for name in NEEDED if name not in names]
    strange = [name for name in names if name not in TAKEN]
    if missing or strange:
        what = f"there is no column {missing[0]!r}" if missing else f"there is a column {strange[0]!r}"
        raise BadInput(f"format cubecast writes topic, payload and, where wanted, headers; {what}: select those")


def producer_of(options: SinkOptions) -> str:
    """Its name: as told, or from the checkpoint, which makes a query what it is."""
    if options.producer:
        return options.producer
    if not options.checkpoint:
        raise BadInput('name the producer: .option("producer", NAME), the same whenever this query is started')
    return "spark-" + hashlib.sha256(options.checkpoint.encode()).hexdigest()[:16]


def stage_of(options: SinkOptions, default: str = "") -> Stage:
    place = options.stage or (f"{options.checkpoint}/cubecast-stage" if options.checkpoint else default)
    if not place:
        raise BadInput('say where rows wait to be published: .option("stageLocation", DIRECTORY), kept between runs')
    if "://" in place.removeprefix("file://"):
        raise BadInput(f"stageLocation {place}: write the path of a directory that driver and executors share")
    return Stage(Path(place.removeprefix("file://").removeprefix("file:")))


class TopicStream(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Each row once, over restarts of tasks, driver and nodes."""

    def __init__(self, options: SinkOptions, columns: Sequence[str]) -> None:
        check_columns(columns)
        self.options, self.name, self.stage = options, producer_of(options), stage_of(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return Staged(*self.stage.write(iterator, "stream"))

    def commit(self, messages: list[Staged | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        is_new = self.stage.newest() is None
        manifest = self.stage.plan(batchId, [(one.file, one.rows) for one in messages if one is not None])
        if not manifest.is_published:
            publish(self.options, self.name, self.stage, manifest, is_new)
            manifest.is_published = True
            self.stage.keep(manifest)
        self.stage.forget_before(manifest)

    def abort(self, messages: list[Staged | None], batchId: int) -> None:  # noqa: N803
        """Staged rows go with the next batch that is committed."""


class TopicWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """A table once: rows are published when all tasks are done, or not at all; a job that is repeated repeats them."""

    def __init__(self, options: SinkOptions, columns: Sequence[str]) -> None:
        check_columns(columns)
        self.options, self.job = options, uuid4().hex
        self.stage = Stage(stage_of(options, gettempdir()).directory / f"cubecast-job-{self.job}")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return Staged(*self.stage.write(iterator, "table"))

    def commit(self, messages: list[Staged | None]) -> None:
        manifest = self.stage.plan(0, [(one.file, one.rows) for one in messages if one is not None])
        publish(self.options, f"spark-job-{self.job}", self.stage, manifest, True)
        self.stage.remove()

    def abort(self, messages: list[Staged | None]) -> None:
        self.stage.remove()


def publish(options: SinkOptions, name: str, stage: Stage, manifest: Manifest, is_new: bool) -> None:
    """Until all of the batch is durable and has reached everybody."""
    topics = list(manifest.first)
    if not topics:
        return
    producer = Producer(
        options.access.nodes,
        name,
        stage.next_epoch(),
        cluster=options.access.cluster,
        login=options.access.login(),
        patience=options.patience,
    )
    thread = LoopThread()

    async def all_of_it() -> None:
        try:
            if is_new:
                check_new(name, await producer.begin(topics))
            await publish_once(producer, topics, _Again(stage, manifest), options.patience)
        finally:
            await producer.close()

    try:
        thread.run(all_of_it())
    finally:
        thread.stop()


def check_new(name: str, last: dict[str, int]) -> None:
    known = [topic for topic, number in last.items() if number]
    if known:
        raise BadInput(
            f"producer {name} has published on {known[0]} before, and its stage is gone: which rows those were is not "
            "known. Bring the stage back, or choose another producer and checkpoint"
        )


class _Again:
    """The rows of a batch, each time from the beginning."""

    def __init__(self, stage: Stage, manifest: Manifest) -> None:
        self._stage, self._manifest = stage, manifest

    def __iter__(self) -> Iterator[tuple[str, int, list[bytes], list[dict[str, str] | None] | None]]:
        return self._stage.rows(self._manifest)
