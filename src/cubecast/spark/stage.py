"""What a sink keeps on disk: rows that wait to be published, and which numbers they have.

The rows of a batch are staged as Arrow files, one per task attempt. When Spark commits a batch, its manifest is written
first: which files, in which order, with which numbers on each topic. From then on the batch is what the manifest says,
also when Spark repeats it after a crash with its rows in another order. The files go when the next batch is committed.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from cubecast.errors import BadInput

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
