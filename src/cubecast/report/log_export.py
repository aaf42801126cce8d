"""A node's log as lines, a JSON object each, in a plain installation, too: what needs Arrow is `log_parquet`."""

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from cubecast.api import envelope
from cubecast.errors import DamagedLog, RemoteProtocolError
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
