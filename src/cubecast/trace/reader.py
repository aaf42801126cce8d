"""Reads a run back as plain values, without Spark. Says what is wrong instead of guessing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from cubecast.errors import TraceError, TruncatedTraceError
from cubecast.ids import MessageId
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.schema import FILE_SUFFIX, RUN_FILE, lacks


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
    """The whole run. Raises TraceError when a file is missing, truncated or of another shape."""
    info = read_info(directory)
    paths = sorted(directory.glob(f"*{FILE_SUFFIX}"))
    if not paths:
        raise TruncatedTraceError(f"{directory} holds no {FILE_SUFFIX} file; the run wrote no events")
    return Trace(info, [event for path in paths for event in _read_file(path, info)])


def _read_file(path: Path, info: RunInfo) -> Iterator[Event]:
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise TruncatedTraceError(
            f"{path} is not a complete Parquet file ({error}); the trace was cut short or damaged"
        ) from None
    missing = lacks(info.schema_version, table.column_names)
    if missing:
        raise TraceError(f"{path} lacks the columns {missing}; it is not a trace of version {info.schema_version}")
    run = info.run
    foreign = set(table.column("run").unique().to_pylist()) - {run}
    if foreign:
        raise TraceError(f"{path} holds rows of run {sorted(map(str, foreign))} while {RUN_FILE} says {run!r}")
    absent = [None] * table.num_rows
    columns = [table.column(name).to_pylist() if name in table.column_names else absent for name in Event._fields]
    deps, cut = Event._fields.index("deps"), Event._fields.index("cut")
    columns[deps] = [_ids(value) for value in columns[deps]]
    columns[cut] = [_ids(value) for value in columns[cut]]
    return map(Event._make, zip(*columns, strict=True))


def _ids(value: list[dict[str, int]] | None) -> tuple[MessageId, ...] | None:
    if value is None:
        return None
    return tuple(MessageId(one["source"], one["source_incarnation"], one["counter"]) for one in value)
