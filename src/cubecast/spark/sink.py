"""DataFrames as messages: rows are staged by the tasks and published by the driver when Spark commits the batch.

Tasks are repeated, so what they did must not show; the driver is one, and a batch is committed again after a crash. The
producer's numbers (`cubecast.api.producer`) keep what is published already from being published again.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from cubecast.api.producer import Producer, publish_once
from cubecast.api.sync import LoopThread
from cubecast.errors import BadInput
from cubecast.spark.options import SinkOptions

# What a sink keeps on disk: rows that wait to be published, and which numbers they have.
#
# The rows of a batch are staged as Arrow files, one per task attempt. When Spark commits a batch, its manifest is
# written first: which files, in which order, with which numbers on each topic. From then on the batch is what the
# manifest says, also when Spark repeats it after a crash with its rows in another order. The files go when the next
# batch is committed.

ROWS_AT_ONCE = 10_000


@dataclass
class Manifest:
    """One committed batch."""

    batch: int
    files: list[str]
    first: dict[str, int]
    """The number of the first row on each topic that the batch has rows for."""
    following: dict[str, int] = field(default_factory=dict)
    """Of every topic ever published on, the number that comes next."""
    is_published: bool = False


class Stage:
    """A directory that driver and executors share; one for each query."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    # In the executors

    def write(self, batches: Iterator[pa.RecordBatch], batch: str) -> tuple[str, dict[str, int]]:
        """One task's rows; the file, and how many rows it has of each topic. It is on the disk when this returns."""
        rows: dict[str, int] = {}
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"rows-{batch}-{uuid4().hex}.arrow"
        sink, writer = None, None
        for one in batches:
            table = checked(one)
            for count in pc.value_counts(table.column("topic")).to_pylist():
                rows[count["values"]] = rows.get(count["values"], 0) + count["counts"]
            if writer is None:
                sink = path.open("wb")
                writer = pa.ipc.new_file(sink, table.schema)
            writer.write_batch(table)
        if writer is None or sink is None:
            return "", {}
        writer.close()
        sink.flush()
        os.fsync(sink.fileno())
        sink.close()
        return path.name, rows

    # In the driver

    def next_epoch(self) -> int:
        """Larger than any before; two drivers never get the same."""
        self.directory.mkdir(parents=True, exist_ok=True)
        epoch = 1 + max((int(path.name[6:]) for path in self.directory.glob("epoch-*")), default=0)
        while True:
            try:
                (self.directory / f"epoch-{epoch}").touch(exist_ok=False)
                break
            except FileExistsError:
                epoch += 1
        for path in self.directory.glob("epoch-*"):
            if int(path.name[6:]) < epoch:
                path.unlink(missing_ok=True)
        return epoch

    def manifest(self, batch: int) -> Manifest | None:
        path = self._path(batch)
        try:
            return Manifest(**json.loads(path.read_text())) if path.exists() else None
        except (ValueError, TypeError):
            raise BadInput(
                f"{path} is no manifest of a batch; put it back, or use another producer and stage"
            ) from None

    def newest(self) -> Manifest | None:
        found = [int(match[1]) for path in self.directory.glob("batch-*.json") if (match := _NAME.match(path.name))]
        return self.manifest(max(found)) if found else None

    def plan(self, batch: int, files: list[tuple[str, dict[str, int]]]) -> Manifest:
        """What the batch is from now on: what an earlier attempt to commit it said, or these files."""
        known = self.manifest(batch)
        if known is not None:
            return known
        before = self.newest()
        following = dict(before.following) if before is not None else {}
        first: dict[str, int] = {}
        for name, rows in files:
            for topic, many in rows.items() if name else ():
                first.setdefault(topic, following.get(topic, 1))
                following[topic] = following.get(topic, 1) + many
        manifest = Manifest(batch, [name for name, _ in files if name], first, following)
        self.keep(manifest)
        return manifest

    def keep(self, manifest: Manifest) -> None:
        path = self._path(manifest.batch)
        draft = path.with_suffix(".draft")
        with draft.open("w") as file:
            json.dump(manifest.__dict__, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        descriptor = os.open(self.directory, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    def forget_before(self, manifest: Manifest) -> None:
        """Older manifests, and rows that belong to no manifest that is kept."""
        for path in self.directory.glob("batch-*.json"):
            match = _NAME.match(path.name)
            if match and int(match[1]) < manifest.batch:
                path.unlink(missing_ok=True)
        for path in self.directory.glob("rows-*.arrow"):
            path.unlink(missing_ok=True)

    def rows(self, manifest: Manifest) -> Iterator[tuple[str, int, list[bytes], list[dict[str, str] | None] | None]]:
        """Runs of rows of one topic, each with the number of its first one."""
        numbers = dict(manifest.first)
        for name in manifest.files:
            if not (self.directory / name).exists():
                where = f"{self.directory / name} is not here"
                raise BadInput(f"{where}: stageLocation has to be a directory that driver and executors share")
            with pa.memory_map(str(self.directory / name)) as source, pa.ipc.open_file(source) as reader:
                for place in range(reader.num_record_batches):
                    for topic, payloads, headers in _runs(reader.get_batch(place)):
                        yield topic, numbers[topic], payloads, headers
                        numbers[topic] += len(payloads)

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def _path(self, batch: int) -> Path:
        return self.directory / f"batch-{batch}.json"


_NAME = re.compile(r"batch-(\d+)\.json$")
WANTED = {"topic": pa.string(), "payload": pa.binary(), "headers": pa.map_(pa.string(), pa.string())}


def checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """With the columns a sink takes, and no nulls where there may be none."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    for name in ("topic", "payload"):
        if columns[name].null_count:
            raise BadInput(f"{columns[name].null_count} rows have no {name}; nothing of this batch was published")
    names = [name for name in WANTED if name in columns]
    return pa.record_batch([columns[name].cast(WANTED[name]) for name in names], names=names)


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[str, list[bytes], list[dict[str, str] | None] | None]]:
    """By topic; of each the rows in their order."""
    topics = batch.column("topic").dictionary_encode()
    for code, topic in enumerate(topics.dictionary.to_pylist()):
        some = batch if len(topics.dictionary) == 1 else batch.filter(pc.equal(topics.indices, code))
        for start in range(0, some.num_rows, ROWS_AT_ONCE):
            piece = some.slice(start, ROWS_AT_ONCE)
            yield topic, piece.column("payload").to_pylist(), _headers(piece)


def _headers(batch: pa.RecordBatch) -> list[Any] | None:
    if "headers" not in batch.schema.names or batch.column("headers").null_count == batch.num_rows:
        return None
    return [None if one is None else dict(one) for one in batch.column("headers").to_pylist()]


# The sink.

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
