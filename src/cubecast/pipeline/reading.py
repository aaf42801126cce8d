"""Reads parts of files into one table per chunk; says what is damaged instead of failing the job."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

from cubecast.pipeline.frames import ROW
from cubecast.trace.schema import MOST_COUNTED

_TYPES = {field.name: field.type for field in to_arrow_schema(ROW)}
PLAIN = (
    "node",
    "incarnation",
    "seq",
    "kind",
    "topic",
    "source",
    "source_incarnation",
    "counter",
    "filter",
    "attributes",
)
_WORDS = ("kind", "topic")
_TEXTS = (*_WORDS, "filter", "attributes")
"""As dictionaries, `_WORDS` read as such."""
OPTIONAL = {
    "deps": "deps",
    "cut": "cuts",
    "digest": "digests",
    "messages": "contents",
    "filter": "filters",
    "attributes": "attributes",
}
"""Columns that are often empty, or absent in older traces, and the footer's flag that tells."""


class UnreadableFile(Exception):  # noqa: N818 - not an error of the program but a fact about a run
    """A file that says nothing about its run, and why.

    `damage`: it cannot be read to its end, so its run is UNKNOWN. `refusal`: it is not what it should be.
    """

    def __init__(self, run: int, what: str, reason: str) -> None:
        super().__init__(reason)
        self.run = run
        self.what = what


def read_chunk(parts: Sequence[dict[str, Any]], columns: Sequence[str], names: dict[str, int]) -> pa.Table:
    """The asked columns (and run numbers) of all parts; those of OPTIONAL only where a part fills them."""
    filled = {name: any(part[flag] for part in parts) for name, flag in OPTIONAL.items()}
    wanted = [name for name in columns if filled.get(name, True)]
    return pa.concat_tables(read_part(part, wanted, names) for part in parts)


def read_part(part: dict[str, Any], columns: Sequence[str], names: dict[str, int]) -> pa.Table:
    read = [*columns, *(() if part["own"] else ("run",))]
    try:
        with pq.ParquetFile(part["path"], read_dictionary=["run", *_WORDS]) as file:
            table = file.read_row_groups(part["groups"], columns=read, use_threads=False)
        for name in set(columns).difference(table.column_names):  # an older trace beside a newer one
            table = table.append_column(name, pa.nulls(table.num_rows))
        if "messages" in columns and pa.types.is_integer(table.schema.field("messages").type):
            place = table.column_names.index("messages")
            table = table.set_column(place, "messages", _counted(table.combine_chunks()))
        declared = {name: _as_declared(table.column(name), name) for name in columns}
        if not part["own"]:
            table.column("run").cast(pa.string()).validate(full=True)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        told = f"{part['path']} cannot be read to its end ({reason})"
        raise UnreadableFile(part["run"], "damage", told) from None
    runs = pa.array(np.full(table.num_rows, part["run"], np.int32))
    if not part["own"]:
        runs = _run_numbers(table.column("run"), part, names)
    return pa.table({"run": runs} | declared)


def _as_declared(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    declared = pa.dictionary(pa.int32(), pa.string()) if name in _TEXTS else _TYPES[name]
    if name in _TEXTS and not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    column = column if column.type == declared else column.cast(declared)
    if name in _TEXTS:
        for chunk in column.chunks:
            chunk.dictionary.validate(full=True)  # Arrow reads bytes that are no UTF-8 and fails where they are used
    return column


def _counted(table: pa.Table) -> pa.Array:
    """What the packets of an older trace hold: the message that the row names and the next ones of its publisher."""
    parts = [table.column(name).combine_chunks() for name in ("source", "source_incarnation", "counter", "messages")]
    named = np.logical_and.reduce([part.is_valid().to_numpy(zero_copy_only=False) for part in parts[:3]])
    source, incarnation, counter, count = (pc.fill_null(part, 0).to_numpy(zero_copy_only=False) for part in parts)
    inside = np.where(named, np.clip(count, 1, MOST_COUNTED), 0).astype(np.int64)
    ends = np.cumsum(inside)
    offset = np.arange(int(inside.sum())) - np.repeat(ends - inside, inside)
    fields = {"source": source, "source_incarnation": incarnation, "counter": counter.astype(np.int64)}
    columns = [pa.array(np.repeat(values, inside)) for values in fields.values()]
    columns[2] = pa.array(np.repeat(fields["counter"], inside) + offset)
    topics = pa.nulls(len(offset), pa.string())
    messages = pa.StructArray.from_arrays([topics, *columns], names=["topic", *fields])
    return pa.ListArray.from_arrays(pa.array(np.concatenate(([0], ends)), pa.int32()), messages)


def _run_numbers(column: pa.ChunkedArray, part: dict[str, Any], names: dict[str, int]) -> pa.Array:
    """A row belongs to the run it names: its directory's, or another one that is being judged."""
    column = column.cast(pa.string())
    found = pc.unique(column)
    numbers = {**names, part["name"]: part["run"]}
    foreign = [name for name in found.to_pylist() if name not in numbers]
    if foreign:
        told = f"{part['path']} holds rows of run {foreign[0]!r} while its header says {part['name']!r}"
        raise UnreadableFile(part["run"], "refusal", told)
    values = pa.array([numbers[name] for name in found.to_pylist()], pa.int32())
    return values.take(pc.index_in(column, found).combine_chunks())
