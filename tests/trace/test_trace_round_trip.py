"""What is written is what is read, byte for byte the same every time, in bounded memory and few files."""

import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecast.errors import BadInput
from cubecast.ids import MessageId
from cubecast.trace import writer as writer_module
from cubecast.trace.event import Event, Inside, RunInfo
from cubecast.trace.reader import read_info, read_trace
from cubecast.trace.schema import COLUMN_NAMES, Kind
from cubecast.trace.writer import MOST_FILES, TraceWriter
from support.model_traces import clean_trace

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
IDS = st.lists(st.builds(MessageId, INT64, INT32, INT64), max_size=3).map(tuple)
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
EVENTS = st.builds(
    Event,
    node=st.sampled_from([0, 1, 64, 2**31 - 1, 2**63 - 1]),
    incarnation=INT32,
    seq=INT64,
    time=st.floats(allow_nan=False),
    kind=st.sampled_from([str(kind) for kind in Kind]),
    topic=st.none() | TEXT,
    source=st.none() | INT64,
    source_incarnation=st.none() | INT32,
    counter=st.none() | INT64,
    deps=st.none() | IDS,
    peer=st.none() | INT64,
    packet=st.none() | INT64,
    messages=st.none() | st.lists(st.builds(Inside, INT64, INT32, INT64, st.none() | TEXT), max_size=3).map(tuple),
    bytes=st.none() | INT32,
    hops=st.none() | INT32,
    digest=st.none() | INT64,
    cut=st.none() | IDS,
    detail=st.none() | TEXT,
    filter=st.none() | TEXT,
    attributes=st.none() | TEXT,
    peers=st.none() | st.lists(INT64, max_size=3).map(tuple),
)


def info(**more: object) -> RunInfo:
    return RunInfo("run-1", "model", ("K0", "P1"), **more)


def write(directory: Path, events: list[Event], header: RunInfo | None = None) -> Path:
    with TraceWriter(directory, header or info()) as writer:
        writer.write_all(events)
    return directory


def digest(directory: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()}


def by_node(events: list[Event]) -> dict[int, list[Event]]:
    nodes: dict[int, list[Event]] = {}
    for event in events:
        nodes.setdefault(event.node, []).append(event)
    return nodes


@settings(max_examples=50, deadline=None)
@given(events=st.lists(EVENTS, min_size=1, max_size=20))
def test_every_field_survives_and_every_node_keeps_its_order(tmp_path_factory, events):
    directory = write(tmp_path_factory.mktemp("t") / "trace", events)
    assert by_node(read_trace(directory).events) == by_node(events)


def test_the_header_survives(tmp_path):
    header = info(nodes=3, seed=7, clock_unit="s", code_version="abc", parameters={"window": [1, 2], "name": "ü"})
    with TraceWriter(tmp_path / "t", header):
        pass
    assert read_info(tmp_path / "t") == header


def test_same_rows_same_bytes(tmp_path):
    events = clean_trace(7).events
    assert digest(write(tmp_path / "a", events)) == digest(write(tmp_path / "b", events))


def test_columns_are_those_of_the_schema(tmp_path):
    directory = write(tmp_path / "t", clean_trace(7).events)
    for path in directory.glob("*.parquet"):
        assert tuple(pq.read_schema(path).names) == COLUMN_NAMES


def test_a_node_lies_in_one_file_and_files_are_few(tmp_path):
    events = [Event(node, 0, seq, 0.0, "start") for seq in range(2) for node in range(150)]
    directory = write(tmp_path / "t", events)
    files = sorted(directory.glob("*.parquet"))
    assert len(files) == MOST_FILES
    homes: dict[int, set[Path]] = {}
    for path in files:
        for node in pq.read_table(path, columns=["node"]).column("node").to_pylist():
            homes.setdefault(node, set()).add(path)
    assert len(homes) == 150
    assert all(len(paths) == 1 for paths in homes.values())


def test_memory_is_bounded_however_many_nodes_there_are(tmp_path, monkeypatch):
    """No node fills a row group of its own, so only the common bound can make the writer flush."""
    monkeypatch.setattr(writer_module, "ROWS_IN_MEMORY", 400)
    events = [Event(node, 0, seq, 0.0, "start") for seq in range(20) for node in range(100)]
    most = 0
    with TraceWriter(tmp_path / "t", info()) as writer:
        for event in events:
            writer.write(event)
            most = max(most, sum(map(len, writer._rows.values())))
    assert most < 400
    assert by_node(read_trace(tmp_path / "t").events) == by_node(events)


def test_a_busy_node_is_flushed_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "ROWS_PER_GROUP", 10)
    events = [Event(5, 0, seq, 0.0, "start") for seq in range(35)]
    directory = write(tmp_path / "t", events)
    (path,) = directory.glob("*.parquet")
    assert pq.ParquetFile(path).num_row_groups == 4
    assert read_trace(directory).events == events


def test_a_directory_in_use_is_refused(tmp_path):
    (tmp_path / "something").touch()
    with pytest.raises(BadInput, match="not an empty directory"):
        TraceWriter(tmp_path, info())
    with pytest.raises(BadInput, match="not an empty directory"):
        TraceWriter(tmp_path / "something", info())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["something"]


def test_an_empty_directory_is_welcome(tmp_path):
    write(tmp_path, [Event(0, 0, 0, 0.0, "start")])
    assert len(read_trace(tmp_path).events) == 1
