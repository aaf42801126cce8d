"""Reads a run back as plain values, without Spark. Says what is wrong instead of guessing."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from cubecast.errors import TraceError, TruncatedTraceError
from cubecast.ids import MessageId
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.schema import COLUMN_NAMES, COLUMNS, FILE_SUFFIX, MESSAGE_IDS, RUN_FILE, lacks

_PLACE: Final = ("node", "incarnation", "seq")
_WORDS: Final = ("run", "kind", "topic")
_LISTS: Final = ("deps", "cut")
_JUDGED: Final = frozenset(
    {*_PLACE, *_WORDS, *_LISTS, "source", "source_incarnation", "counter", "messages", "digest"},
)
_STRINGS: Final = (pa.types.is_string, pa.types.is_large_string)
_FITTING: Final[dict[str, tuple[Callable[[pa.DataType], bool], ...]]] = {
    "string": _STRINGS,
    "int32": (pa.types.is_integer,),
    "int64": (pa.types.is_integer,),
    "double": (pa.types.is_floating, pa.types.is_integer),
    MESSAGE_IDS: (pa.types.is_list, pa.types.is_large_list),
}
"""What a column may be in a file: wider numbers are read as they are declared."""
_ID = pa.struct([("source", pa.int32()), ("source_incarnation", pa.int32()), ("counter", pa.int64())])
_ARROW: Final = {"string": pa.string(), "int32": pa.int32(), "int64": pa.int64(), "double": pa.float64()}
_TYPES: Final = {name: _ARROW.get(kind, pa.list_(_ID)) for name, kind, _ in COLUMNS}


class Trace(NamedTuple):
    """A run in memory: its header, and every node's rows in the order they were written."""

    info: RunInfo
    events: list[Event]


def read_info(directory: Path) -> RunInfo:
    path = directory / RUN_FILE
    if not directory.is_dir():
        raise TraceError(f"{directory} is not a directory; name the directory a trace was written to")
    if not path.is_file():
        raise TraceError(f"{directory} holds no {RUN_FILE}; it is not a trace, or its writer never started")
    try:
        data = json.loads(path.read_text())
    except ValueError as error:
        raise TraceError(f"{path} is not JSON: {error}") from None
    return RunInfo.from_json(data)


def read_trace(directory: Path) -> Trace:
    """The whole run. Raises TraceError when it is no trace, TruncatedTraceError when what is there is damaged."""
    info = read_info(directory)
    paths = sorted(directory.glob(f"*{FILE_SUFFIX}"))
    if not paths:
        raise TraceError(f"{directory} holds no {FILE_SUFFIX} file; the run wrote no events")
    return Trace(info, [event for path in paths for event in _read_file(path, info)])


def _read_file(path: Path, info: RunInfo) -> Iterator[Event]:
    try:
        table = pq.read_table(path)
        _refuse_other_shapes(path, info.schema_version, table.schema)
        for name in set(COLUMN_NAMES).difference(table.column_names):  # older traces lack what came later
            table = table.append_column(name, pa.nulls(table.num_rows))
        columns = {name: _as_declared(table.column(name), name) for name in COLUMN_NAMES}
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise TruncatedTraceError(
            f"{path} is not a complete Parquet file ({reason}); the trace was cut short or damaged"
        ) from None
    run = info.run
    foreign = set(columns["run"].unique().to_pylist()) - {run}
    if foreign:
        raise TraceError(f"{path} holds rows of run {sorted(map(str, foreign))} while {RUN_FILE} says {run!r}")
    if any(columns[name].null_count for name in _PLACE):
        raise TruncatedTraceError(f"{path} is damaged: rows without node, incarnation or seq belong to no log")
    values = {name: _values(columns[name]) for name in Event._fields}
    for name in _LISTS:
        values[name] = [_ids(value, path, name) for value in values[name]]
    return map(Event._make, zip(*(values[name] for name in Event._fields), strict=True))


def _refuse_other_shapes(path: Path, version: int, schema: pa.Schema) -> None:
    missing = lacks(version, schema.names)
    if missing:
        raise TraceError(f"{path} lacks the columns {missing}; it is not a trace of version {version}")
    for name, kind, _ in COLUMNS:
        found = schema.field(name).type if name in schema.names else pa.null()
        value = found.value_type if pa.types.is_dictionary(found) else found
        if not (pa.types.is_null(value) or any(fits(value) for fits in _FITTING[kind])):
            raise TraceError(f"{path} has {found} in column {name!r} where this schema version has {kind}")


def _as_declared(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """As the schema has it; what cannot be told so (a number too large, text that is no UTF-8) raises ArrowInvalid.

    Only in the columns that verdicts depend on: nobody is judged by a detail.
    """
    if name not in _JUDGED:
        return column
    declared = column.cast(_TYPES[name])
    if name in _WORDS:
        declared.validate(full=True)
    return declared


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        return [value and value.decode(errors="replace") for value in column.cast(pa.binary()).to_pylist()]


def _ids(value: list[dict[str, int] | None] | None, path: Path, name: str) -> tuple[MessageId, ...] | None:
    if value is None:
        return None
    ids = []
    for one in value:
        if one is None or None in one.values():
            raise TruncatedTraceError(f"{path} is damaged: a message in {name!r} lacks a part of its name")
        ids.append(MessageId(one["source"], one["source_incarnation"], one["counter"]))
    return tuple(ids)
