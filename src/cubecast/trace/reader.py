"""Reads a run back as plain values, without Spark. Says what is wrong instead of guessing."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cubecast.errors import TraceError, TruncatedTraceError
from cubecast.ids import MessageId
from cubecast.trace.event import Event, Inside, RunInfo
from cubecast.trace.schema import (
    COLUMN_NAMES,
    COLUMNS,
    CONTENTS,
    COUNTS_MESSAGES,
    FILE_SUFFIX,
    LISTS,
    MESSAGE_IDS,
    MOST_COUNTED,
    NODE_IDS,
    RUN_FILE,
    lacks,
)

_PLACE: Final = ("node", "incarnation", "seq")
_WORDS: Final = ("run", "kind", "topic", "filter", "attributes")
_IDS: Final = ("deps", "cut")
_JUDGED: Final = frozenset(
    {*_PLACE, *_WORDS, *_IDS, "source", "source_incarnation", "counter", "messages", "digest"},
)
_STRINGS: Final = (pa.types.is_string, pa.types.is_large_string)
_FITTING: Final[dict[str, tuple[Callable[[pa.DataType], bool], ...]]] = {
    "string": _STRINGS,
    "int32": (pa.types.is_integer,),
    "int64": (pa.types.is_integer,),
    "double": (pa.types.is_floating, pa.types.is_integer),
    **dict.fromkeys(LISTS, (pa.types.is_list, pa.types.is_large_list)),
}
"""What a column may be in a file: wider numbers are read as they are declared."""
_ID = [("source", pa.int64()), ("source_incarnation", pa.int32()), ("counter", pa.int64())]
_ARROW: Final = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    MESSAGE_IDS: pa.list_(pa.struct(_ID)),
    CONTENTS: pa.list_(pa.struct([("topic", pa.string()), *_ID])),
    NODE_IDS: pa.list_(pa.int64()),
}
_TYPES: Final = {name: _ARROW[kind] for name, kind, _ in COLUMNS}


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
        counted = info.schema_version <= COUNTS_MESSAGES
        columns = {
            name: _as_declared(table.column(name), name, pa.int32() if counted and name == "messages" else _TYPES[name])
            for name in COLUMN_NAMES
        }
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
    several = {*_IDS, *(() if counted else ("messages",))}
    values = {name: _values(columns[name]) for name in Event._fields if name not in several}
    for name in _IDS:
        values[name] = _ids(columns[name], path, name)
    values["peers"] = [value if value is None else tuple(value) for value in values["peers"]]
    if counted:
        first = zip(*(values[name] for name in ("source", "source_incarnation", "counter")), strict=True)
        values["messages"] = [_counted(*one) for one in zip(first, values["messages"], strict=True)]
    else:
        values["messages"] = _contents(columns["messages"])
    return map(Event._make, zip(*(values[name] for name in Event._fields), strict=True))


def _refuse_other_shapes(path: Path, version: int, schema: pa.Schema) -> None:
    missing = lacks(version, schema.names)
    if missing:
        raise TraceError(f"{path} lacks the columns {missing}; it is not a trace of version {version}")
    for name, kind, _ in COLUMNS:
        found = schema.field(name).type if name in schema.names else pa.null()
        value = found.value_type if pa.types.is_dictionary(found) else found
        declared = "int32" if name == "messages" and version <= COUNTS_MESSAGES else kind
        if not (pa.types.is_null(value) or any(fits(value) for fits in _FITTING[declared])):
            raise TraceError(f"{path} has {found} in column {name!r} where this schema version has {declared}")


def _as_declared(column: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    """As the schema has it; what cannot be told so (a number too large, text that is no UTF-8) raises ArrowInvalid.

    Only in the columns that verdicts depend on: nobody is judged by a detail.
    """
    if name not in _JUDGED:
        return column
    declared = column.cast(kind)
    if name in _WORDS:
        declared.validate(full=True)
    return declared


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        return [value and value.decode(errors="replace") for value in column.cast(pa.binary()).to_pylist()]


def _several(column: pa.ChunkedArray, names: Sequence[str]) -> tuple[list[int | None], Iterator[tuple[Any, ...]]]:
    """How many structures each row lists, None for no list, and the fields of all of them, None for what is missing.

    Column by column: a dictionary for each structure would take longer than all the rest of reading.
    """
    lengths = pc.list_value_length(column).to_pylist()
    flat = pc.list_flatten(column)
    return lengths, zip(*(_values(pc.struct_field(flat, name)) for name in names), strict=True)


def _ids(column: pa.ChunkedArray, path: Path, name: str) -> list[tuple[MessageId, ...] | None]:
    lengths, found = _several(column, [one for one, _ in _ID])

    def whole(one: tuple[Any, ...]) -> MessageId:
        if None in one:
            raise TruncatedTraceError(f"{path} is damaged: a message in {name!r} lacks a part of its name")
        return MessageId(*one)

    return [None if many is None else tuple(map(whole, islice(found, many))) for many in lengths]


def _contents(column: pa.ChunkedArray) -> list[tuple[Inside, ...] | None]:
    """What lacks a part of its name tells nothing."""
    lengths, found = _several(column, [*(one for one, _ in _ID), "topic"])
    return [
        None if many is None else tuple([Inside(*one) for one in islice(found, many) if None not in one[:3]])
        for many in lengths
    ]


def _counted(first: tuple[int | None, ...], count: int | None) -> tuple[Inside, ...] | None:
    """What an older trace's packet holds: the named message and the next ones of its publisher."""
    source, incarnation, counter = first
    if count is None:
        return None
    if source is None or incarnation is None or counter is None:
        return ()
    inside = max(1, min(count, MOST_COUNTED))
    return tuple(Inside(source, incarnation, one) for one in range(counter, counter + inside))
