"""A node's log as others can read it: lines, a JSON object each, or Parquet for those who have Arrow."""

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from cubecast.api import envelope
from cubecast.errors import BadInput, DamagedLog, RemoteProtocolError
from cubecast.escaping import visible_json
from cubecast.log.check import read_all, still
from cubecast.log.load import load
from cubecast.log.record import Record
from cubecast.patterns import Selection


def records(directory: Path, patterns: Sequence[str] = ()) -> Iterator[Record | tuple[str, DamagedLog]]:
    """Topic by topic in the order of offsets; damaged ranges in their places."""
    selected = Selection(patterns) if patterns else None
    with still(directory) as reader:
        for topic, held in sorted(load(reader.database).topics.items()):
            if selected is None or selected(topic):
                for piece in read_all(reader, topic, held):
                    yield piece if isinstance(piece, Record) else (topic, piece)


def export_lines(directory: Path, out: TextIO, patterns: Sequence[str] = ()) -> list[str]:
    """What was damaged, which is told among the lines as well."""
    problems = []
    for piece in records(directory, patterns):
        if isinstance(piece, Record):
            out.writelines(visible_json(json.dumps(line, ensure_ascii=False)) + "\n" for line in _lines(piece))
        else:
            topic, error = piece
            why, first, last = error.args[:3]
            problems.append(why)
            out.write(json.dumps({"topic": topic, "damaged": {"first": first, "last": last, "why": why}}) + "\n")
    return problems


def _lines(record: Record) -> Iterator[dict[str, Any]]:
    source, incarnation, counter = record.first
    for index, payload in enumerate(record.payloads):
        yield {
            "topic": record.topic,
            "offset": record.offset + index,
            "source": source,
            "incarnation": incarnation,
            "counter": counter + index,
            "at": record.at,
            **_content(payload),
        }


def _content(payload: bytes) -> dict[str, Any]:
    """`data` for text and JSON, `base64` for bytes; bytes as they travelled when they are no envelope."""
    try:
        data, headers = envelope.data(payload), envelope.headers(payload)
    except RemoteProtocolError:
        data, headers = payload, {}
    shown = {"base64": base64.b64encode(data).decode()} if isinstance(data, bytes) else {"data": data}
    return shown | ({"headers": headers} if headers else {})


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
