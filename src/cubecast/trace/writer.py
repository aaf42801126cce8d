"""Writes a run to Parquet in bounded memory, every node's rows in order and in one file."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from cubecast.errors import BadInput
from cubecast.ids import MessageId, NodeId
from cubecast.trace.event import Event, Inside, RunInfo
from cubecast.trace.schema import COLUMN_NAMES, COLUMNS, CONTENTS, FILE_SUFFIX, MESSAGE_IDS, NODE_IDS, RUN_FILE

_ID_FIELDS = [
    pa.field("source", pa.int64()),
    pa.field("source_incarnation", pa.int32()),
    pa.field("counter", pa.int64()),
]
_INSIDE_FIELDS = [pa.field("topic", pa.string()), *_ID_FIELDS]
_ARROW_TYPES = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    MESSAGE_IDS: pa.list_(pa.struct(_ID_FIELDS)),
    CONTENTS: pa.list_(pa.struct(_INSIDE_FIELDS)),
    NODE_IDS: pa.list_(pa.int64()),
}
ARROW_SCHEMA = pa.schema([pa.field(name, _ARROW_TYPES[kind], nullable) for name, kind, nullable in COLUMNS])

MOST_FILES = 64
"""Nodes share files beyond this many: a run of 4,096 nodes must not need 4,096 open files."""

ROWS_PER_GROUP = 16_384
ROWS_IN_MEMORY = 1_000_000


class TraceWriter:
    """Buffers rows per node, writes them as row groups of one node each. Deterministic: same rows, same bytes."""

    def __init__(self, directory: Path, info: RunInfo) -> None:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise BadInput(f"{directory} exists and is not an empty directory; name another one for the trace")
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.info = info
        self._rows: defaultdict[NodeId, list[Event]] = defaultdict(list)
        self._buffered = 0
        self._files: dict[int, pq.ParquetWriter] = {}
        (directory / RUN_FILE).write_text(json.dumps(info.to_json(), indent=2, sort_keys=True) + "\n")

    def write(self, event: Event) -> None:
        rows = self._rows[event.node]
        rows.append(event)
        self._buffered += 1
        if len(rows) >= ROWS_PER_GROUP:
            self._flush(event.node)
        elif self._buffered >= ROWS_IN_MEMORY:
            self._flush_all()

    def write_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self.write(event)

    def close(self) -> None:
        self._flush_all()
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _flush_all(self) -> None:
        for node in sorted(self._rows):
            self._flush(node)

    def _flush(self, node: NodeId) -> None:
        rows = self._rows.pop(node)
        self._buffered -= len(rows)
        shard = node % MOST_FILES
        if shard not in self._files:
            path = self.directory / f"nodes-{shard:05d}{FILE_SUFFIX}"
            self._files[shard] = pq.ParquetWriter(path, ARROW_SCHEMA, compression="zstd")
        self._files[shard].write_table(table_of(self.info.run, rows), row_group_size=len(rows))


def table_of(run: str, rows: Sequence[Event]) -> pa.Table:
    """These rows as an Arrow table in the trace schema."""
    columns: dict[str, Any] = dict(zip(Event._fields, zip(*rows, strict=True), strict=True)) if rows else {}
    columns["run"] = [run] * len(rows)
    arrays = []
    for field in ARROW_SCHEMA:
        values = columns.get(field.name, [])
        is_struct = pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type)
        arrays.append(_id_lists(values, field.type) if is_struct else pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=ARROW_SCHEMA)


_PARTS = {"source": 0, "source_incarnation": 1, "counter": 2, "topic": 3}
"""Where `MessageId` and `Inside` have what."""


def _id_lists(values: Sequence[Sequence[MessageId | Inside] | None], kind: pa.ListType) -> pa.Array:
    """Lists of message ids, built column-wise: a hundred times faster than from dictionaries."""
    offsets: list[int | None] = []
    flat: list[MessageId | Inside] = []
    end = 0
    for ids in values:
        offsets.append(None if ids is None else end)
        if ids is not None:
            flat.extend(ids)
            end += len(ids)
    offsets.append(end)
    fields = list(kind.value_type)
    parts = [pa.array([one[_PARTS[field.name]] for one in flat], field.type) for field in fields]
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.StructArray.from_arrays(parts, fields=fields), type=kind
    )


assert ("run", *Event._fields) == COLUMN_NAMES, "Event and the schema must list the same columns in the same order"
