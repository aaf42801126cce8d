"""A reader says what is wrong with a trace instead of guessing."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cubecast.errors import TraceError, TruncatedTraceError
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.reader import read_info, read_trace
from cubecast.trace.schema import RUN_FILE, SCHEMA_VERSION
from cubecast.trace.writer import TraceWriter


@pytest.fixture
def directory(tmp_path) -> Path:
    with TraceWriter(tmp_path / "t", RunInfo("run-1", "model", ("P1",))) as writer:
        writer.write_all(Event(node, 0, seq, 0.0, "start") for node in range(3) for seq in range(50))
    return tmp_path / "t"


def rewrite_header(directory: Path, **changes: object) -> None:
    path = directory / RUN_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def a_file(directory: Path) -> Path:
    return min(directory.glob("*.parquet"))


@pytest.mark.parametrize("kept", [0, 3, 200, -1])
def test_a_file_cut_short(directory, kept):
    path = a_file(directory)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(TruncatedTraceError, match=f"{path.name} is not a complete Parquet file"):
        read_trace(directory)


def test_no_file_at_all(directory):
    for path in directory.glob("*.parquet"):
        path.unlink()
    with pytest.raises(TraceError, match="wrote no events"):
        read_trace(directory)


def test_another_version(directory):
    rewrite_header(directory, schema_version=SCHEMA_VERSION + 1)
    with pytest.raises(TraceError, match=r"schema version 4; this program reads versions 1 to 3"):
        read_trace(directory)


def test_rows_of_another_run(directory):
    rewrite_header(directory, run="run-2")
    with pytest.raises(TraceError, match=r"rows of run \['run-1'\] while run.json says 'run-2'") as caught:
        read_trace(directory)
    assert not isinstance(caught.value, TruncatedTraceError)


def test_missing_columns(directory):
    path = a_file(directory)
    pq.write_table(pq.read_table(path).drop_columns(["seq", "kind"]), path)
    with pytest.raises(TraceError, match=r"lacks the columns \['seq', 'kind'\]"):
        read_trace(directory)


def test_not_a_directory(tmp_path):
    with pytest.raises(TraceError, match="not a directory"):
        read_info(tmp_path / "nowhere")


def test_no_header(directory):
    (directory / RUN_FILE).unlink()
    with pytest.raises(TraceError, match=f"holds no {RUN_FILE}"):
        read_trace(directory)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not JSON"),
        ("[]", "not a JSON object"),
        ('{"schema_version": 1}', "lacks 'run' or has another type there: None"),
        ('{"schema_version": 1, "run": "r", "protocol": "p", "promises": [], "nodes": "5"}', "'nodes'.*there: '5'"),
        ('{"schema_version": 1, "run": "r", "protocol": "p", "promises": ["P99"]}', "P99"),
    ],
)
def test_a_header_that_is_none(directory, text, complaint):
    (directory / RUN_FILE).write_text(text)
    with pytest.raises(TraceError, match=complaint):
        read_info(directory)
