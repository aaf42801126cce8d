"""How the rows lie in files, from Parquet footers alone, and how to read whole nodes together without a shuffle.

Row groups that share a node must be read together. Our writer gives every row group one node, so that a run splits into
as many pieces as it has nodes, however many files hold them. Row groups that mix many nodes are read together while
they are few; beyond that, Spark shuffles the rows by node first.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from cubecast.pipeline.findings import batch_of
from cubecast.pipeline.frames import FOOTER, ROW
from cubecast.trace.schema import COLUMNS, COUNTS_MESSAGES, MOST_COUNTED, Kind, lacks

ROWS_READ_TOGETHER = 4_000_000
"""Row groups that mix nodes are sorted in one worker's memory up to this many rows."""
ROWS_PER_CHUNK = 250_000
ROWS_PER_TASK = 2_000_000
Chunk: TypeAlias = list[dict[str, Any]]
"""Parts of files that are read at once: whole nodes, few enough rows."""
FLAGS = ("deps", "cuts", "digests", "contents", "filters", "attributes")
"""Which of the columns that are often empty a row group fills."""
_IDS = ("node", "source", *(f"{name}.list.element.source" for name in ("deps", "cut", "messages")))
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


def footers(files: DataFrame) -> DataFrame:
    """(run, name, path, version) of every file → one row per row group."""
    return files.select("run", "name", "path", "version").mapInArrow(_read_footers, FOOTER).select(*FOOTER.names)


def _read_footers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [row for file in batch.to_pylist() for row in file_footer(**file)]
        yield batch_of(rows, FOOTER)


def file_footer(run: int, name: str, path: str, version: int) -> list[dict[str, Any]]:
    """The row groups of one file, or what is wrong with it."""
    where = {"run": run, "path": path}
    try:
        with pq.ParquetFile(path) as file:
            refusal = _refusal(path, version, file.schema_arrow)
            if refusal:
                return [where | {"refusal": refusal}]
            metadata = file.metadata
            groups = [
                where | {"group": group} | _group(metadata.row_group(group), name)
                for group in range(metadata.num_row_groups)
            ]
            wide = [group.pop("wide") for group in groups]
            if any(wide):
                told = f"{path} has node ids of more than 31 bits, which `cubecast check` judges and this does not"
                return [where | {"refusal": told}]
            return groups
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        return [where | {"damage": f"{path} is not a complete Parquet file ({reason}); it was cut short or damaged"}]


def _refusal(path: str, version: int, schema: pa.Schema) -> str | None:
    missing = lacks(version, schema.names)
    if missing:
        return f"{path} lacks the columns {missing}; it is not a trace of version {version}"
    for name, kind, _ in COLUMNS:
        found = schema.field(name).type if name in schema.names else pa.null()
        declared = "int32" if name == "messages" and version <= COUNTS_MESSAGES else kind
        if not _fits(declared, found):
            return f"{path} has {found} in column {name!r} where this schema version has {declared}"
    return None


def _fits(kind: str, found: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        found = found.value_type
    if kind == "string":
        return bool(pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_null(found))
    if kind.startswith("int"):
        return bool(pa.types.is_integer(found) or pa.types.is_null(found))
    if kind == "double":
        return bool(pa.types.is_floating(found) or pa.types.is_integer(found) or pa.types.is_null(found))
    return bool(pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_null(found))


def _is_wide(column: Any) -> bool:
    """Publishers are kept as one number with their incarnation: ids must leave room for that."""
    told = column.statistics
    return bool(told is not None and told.has_min_max and not -(2**31) <= told.min <= told.max < 2**31)


def _group(group: Any, name: str) -> dict[str, Any]:
    columns = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    low, high = _span(columns["node"]) or (_LOWEST, _HIGHEST)
    kinds = _span(columns["kind"])
    return {
        "rows": group.num_rows,
        "low": int(low),
        "high": int(high),
        "own": _span(columns["run"]) == (name, name),
        "wide": any(_is_wide(columns[one]) for one in _IDS if one in columns),
        # An empty list is a statement too, and a null inside one is damage; statistics tell neither from a list that
        # is null itself: believe the kinds.
        "deps": _filled(columns, "deps") or _among(kinds, Kind.PUBLISH),
        "cuts": _filled(columns, "cut") or _among(kinds, Kind.CUT) or _among(kinds, Kind.SUBSCRIBED),
        "digests": _filled(columns, "digest"),
        "contents": _filled(columns, "messages") or _among(kinds, Kind.RECEIVE),
        "filters": _filled(columns, "filter"),
        "attributes": _filled(columns, "attributes"),
    }


def _among(kinds: tuple[Any, Any] | None, kind: Kind) -> bool:
    return kinds is None or kinds[0] <= kind <= kinds[1]


def _span(column: Any) -> tuple[Any, Any] | None:
    """The smallest and largest value, if the file says so and no value is missing."""
    statistics = column.statistics
    if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
        return None
    try:
        return statistics.min, statistics.max
    except UnicodeDecodeError:  # reading the column will say so
        return None


def _filled(columns: dict[str, Any], name: str) -> bool:
    leaves = [column for path, column in columns.items() if path == name or path.startswith(f"{name}.")]
    return any(leaf.statistics is None or leaf.statistics.null_count != leaf.num_values for leaf in leaves)


@dataclass
class Piece:
    """Row groups that must be read together."""

    rows: int = 0
    high: int = _LOWEST
    nodes_mixed: bool = False
    groups: list[dict[str, Any]] = field(default_factory=list)

    def add(self, group: dict[str, Any]) -> None:
        self.rows += group["rows"]
        self.high = max(self.high, group["high"])
        self.nodes_mixed |= group["low"] != group["high"] or bool(self.groups and group["low"] != self.groups[0]["low"])
        self.groups.append(group)


def pieces(groups: list[dict[str, Any]]) -> list[Piece]:
    """Rows of `FOOTER` without damage, as the smallest sets that keep every node of every run together."""
    found: list[Piece] = []
    if not all(group["own"] for group in groups):
        # Rows of several runs in one row group: only reading tells which.
        everything = Piece()
        for group in groups:
            everything.add(group)
        return [everything]
    run = None
    for group in sorted(groups, key=lambda one: (one["run"], one["low"], one["path"], one["group"])):
        if run != group["run"] or group["low"] > found[-1].high:
            found.append(Piece())
        run = group["run"]
        found[-1].add(group)
    return found


def scattered(piece: Piece) -> bool:
    """Too big to be sorted in one worker's memory, and not the log of a single node."""
    return piece.nodes_mixed and piece.rows > ROWS_READ_TOGETHER


def tasks(found: list[Piece], names: dict[int, str], parallelism: int) -> list[list[Chunk]]:
    """The chunks of every task: neighbouring pieces together, the heaviest task first so that no core waits long."""
    target = max(min(ROWS_PER_TASK, sum(piece.rows for piece in found) // (4 * parallelism)), 1)
    planned: list[list[Piece]] = []
    rows = target
    for piece in sorted(found, key=lambda one: (one.groups[0]["path"], one.groups[0]["group"])):
        if rows >= target:
            planned.append([])
            rows = 0
        planned[-1].append(piece)
        rows += piece.rows
    planned.sort(key=lambda task: -sum(piece.rows for piece in task))
    return [list(_chunks(task, names)) for task in planned]


def _chunks(found: list[Piece], names: dict[int, str]) -> Iterator[Chunk]:
    """Small pieces are read and judged together: one numpy call for many nodes costs what one for one does."""
    waiting: list[dict[str, Any]] = []
    rows = 0
    for piece in found:
        if waiting and rows + piece.rows > ROWS_PER_CHUNK:
            yield _parts(waiting, names)
            waiting, rows = [], 0
        waiting += piece.groups
        rows += piece.rows
    if waiting:
        yield _parts(waiting, names)


def _parts(groups: list[dict[str, Any]], names: dict[int, str]) -> Chunk:
    by_file: dict[str, dict[str, Any]] = {}
    for group in groups:
        part = by_file.setdefault(
            group["path"],
            {
                "path": group["path"],
                "run": group["run"],
                "name": names[group["run"]],
                "own": True,
                **dict.fromkeys(FLAGS, False),
                "groups": [],
            },
        )
        part["groups"].append(group["group"])
        part |= {"own": part["own"] and group["own"]}
        part |= {name: part[name] or group[name] for name in FLAGS}
    return list(by_file.values())


# Reads parts of files into one table per chunk; says what is damaged instead of failing the job.

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
