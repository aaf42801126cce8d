"""A node's log as Parquet, for those who have Arrow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cubecast.errors import BadInput
from cubecast.log.record import Record
from cubecast.report.log_export import records

SCHEMA = pa.schema(
    [
        ("topic", pa.dictionary(pa.int32(), pa.string())),
        ("offset", pa.int64()),
        ("source", pa.int32()),
        ("incarnation", pa.int32()),
        ("counter", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("payload", pa.binary()),
    ]
)
ROWS = 64 << 10
"""Of one group in a Parquet file."""


def export_parquet(directory: Path, path: Path, patterns: Sequence[str] = ()) -> list[str]:
    """What was damaged, and is not in the file."""
    problems: list[str] = []
    rows: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    try:
        with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
            for piece in records(directory, patterns):
                if isinstance(piece, Record):
                    _add(rows, piece)
                else:
                    problems.append(piece[1].args[0])
                if len(rows["offset"]) >= ROWS:
                    _write(writer, rows)
            _write(writer, rows)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror or error}") from None
    return problems


def _add(rows: dict[str, list[Any]], record: Record) -> None:
    source, incarnation, counter = record.first
    many = len(record.payloads)
    rows["topic"] += [record.topic] * many
    rows["offset"] += range(record.offset, record.offset + many)
    rows["source"] += [source] * many
    rows["incarnation"] += [incarnation] * many
    rows["counter"] += range(counter, counter + many)
    rows["at"] += [int(record.at * 1e6)] * many
    rows["payload"] += record.payloads


def _write(writer: Any, rows: dict[str, list[Any]]) -> None:
    if rows["offset"]:
        writer.write_table(pa.table([pa.array(rows[one.name], one.type) for one in SCHEMA], schema=SCHEMA))
        for column in rows.values():
            column.clear()
