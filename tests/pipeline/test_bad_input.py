"""What is no trace, or none of this version, is refused with one clear line before or while Spark reads it."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from cubecast.check import check_directory
from cubecast.errors import BadInput, TraceError
from cubecast.pipeline.layout import file_footer
from cubecast.pipeline.staging import checked_properties, find_runs
from cubecast.pipeline.verify import verify
from cubecast.trace.event import Event
from cubecast.trace.reader import Trace, read_trace
from cubecast.trace.schema import ADDED, RUN_FILE, SCHEMA_VERSION
from support.agreeing import write_trace
from support.model_traces import ALL_PROMISES, clean_trace


def change_header(directory: Path, **values: object) -> None:
    path = directory / RUN_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "run", clean_trace(1))


def as_first_version(directory: Path) -> Path:
    """As programs wrote it before there were digests."""
    return as_version(1, directory)


def as_version(version: int, directory: Path) -> Path:
    """As programs wrote it then: without later columns, a number of messages, and narrow ids."""
    for path in directory.glob("*.parquet"):
        table = pq.read_table(path).drop_columns([name for name, since in ADDED.items() if since > version])
        for name in ("node", "source", "peer"):
            table = table.set_column(table.column_names.index(name), name, table.column(name).cast(pa.int32()))
        counts = pc.list_value_length(table.column("messages")).cast(pa.int32())
        table = table.set_column(table.column_names.index("messages"), "messages", counts)
        pq.write_table(table, path)
    change_header(directory, schema_version=version)
    return directory


def refused(*directories: Path) -> str:
    with pytest.raises((TraceError, BadInput)) as caught:
        find_runs(directories)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_named():
    assert "at least one directory" in refused()


def test_no_such_directory(tmp_path: Path):
    assert "does not exist" in refused(tmp_path / "nowhere")


def test_a_file_is_no_directory(run: Path):
    assert "is not a directory" in refused(run / RUN_FILE)


def test_a_directory_without_a_header(tmp_path: Path):
    assert f"holds no {RUN_FILE}" in refused(tmp_path)


def test_an_empty_dataset(run: Path):
    for path in run.glob("*.parquet"):
        path.unlink()
    assert "wrote no events" in refused(run)


@pytest.mark.parametrize("text", ["{", "[]", "7"])
def test_a_header_that_is_none(run: Path, text: str):
    (run / RUN_FILE).write_text(text)
    assert "is not" in refused(run)


def test_a_header_without_promises(run: Path):
    change_header(run, promises=None)
    assert "lacks `promises`" in refused(run)


def test_a_promise_nobody_knows(run: Path):
    change_header(run, promises=["P99"])
    assert "P99" in refused(run)


def test_another_schema_version(run: Path):
    change_header(run, schema_version=99)
    assert "has schema version 99; this program reads versions 1 to 3" in refused(run)


def test_one_of_another_schema_version_is_refused_alone(run: Path, tmp_path: Path):
    other = write_trace(tmp_path / "other", clean_trace(1))
    change_header(other, schema_version=99)
    assert [one.refusal is None for one in find_runs([run, other])] == [True, False]


def test_a_trace_of_the_first_version_beside_one_of_today(run: Path, tmp_path: Path):
    """Its rows lack a column, so that one property cannot be decided; everything else is."""
    older = as_first_version(write_trace(tmp_path / "older", clean_trace(1)))
    both = verify(None, [run, older], ["P1", "P1b", "P8"])
    assert [(one.properties["P1b"].verdict, one.properties["P8"].verdict) for one in both.runs] == [
        ("VALID", "VALID"),
        ("UNKNOWN", "VALID"),
    ]
    assert "traces of version 1 do not tell what P1b needs" in both.unknown_because[0]
    alone = check_directory(older, ["P1", "P1b", "P8"])
    assert {name: str(verdict) for name, verdict in alone.verdicts.items()} == {
        name: one.verdict for name, one in both.runs[1].properties.items()
    }


@pytest.mark.parametrize("version", [1, 2])
def test_older_versions_are_judged_as_today(tmp_path: Path, version: int):
    """They count the messages in a packet where today's list them; here that says the same."""
    for seed in range(6):
        trace = clean_trace(seed)
        today, older = write_trace(tmp_path / f"today{seed}", trace), write_trace(tmp_path / f"older{seed}", trace)
        as_version(version, older)
        wanted = [name for name in ALL_PROMISES if name != "P1b"]
        assert check_directory(older, wanted).verdicts == check_directory(today, wanted).verdicts, f"seed {seed}"
        judged = verify(None, [older, today], wanted).runs
        assert judged[0].properties == judged[1].properties, f"seed {seed}"
        inside = [[(e.seq, e.messages) for e in read_trace(place).events] for place in (older, today)]
        assert inside[0] == inside[1], f"seed {seed}"


def test_ids_of_more_than_31_bits_are_refused_by_name_and_judged_by_the_checker(run: Path, tmp_path: Path):
    trace = clean_trace(1)
    only = [Event(event.node + 2**40, *event[1:]) for event in trace.events if event.kind == "quiescent"]
    place = write_trace(tmp_path / "wide", Trace(replace(trace.info, nodes=None), only))
    both = verify(None, [run, place]).runs
    assert both[0].verdict == "VALID" and "more than 31 bits" in str(both[1].refused)
    assert {event.node for event in read_trace(place).events} == {event.node for event in only}


def test_a_trace_of_today_must_have_todays_columns(run: Path):
    as_first_version(run)
    change_header(run, schema_version=SCHEMA_VERSION)
    (alone,) = verify(None, [run]).runs
    assert "lacks the columns ['digest', 'filter', 'attributes', 'peers']; it is not a" in str(alone.refused)
    with pytest.raises(TraceError, match=r"lacks the columns \['digest', 'filter'"):
        check_directory(run)


def test_a_property_that_does_not_exist(run: Path):
    with pytest.raises(BadInput, match="there is no property P17"):
        checked_properties(find_runs([run]), ["P1", "P17"])


def test_directories_of_directories_and_the_same_one_twice(run: Path, tmp_path: Path):
    write_trace(tmp_path / "deep" / "below", clean_trace(2))
    found = find_runs([tmp_path, run])
    assert [Path(one.directory).name for one in found] == ["below", "run"]
    assert [one.index for one in found] == [0, 1]


def test_missing_columns(run: Path):
    path = sorted(run.glob("*.parquet"))[0]
    pq.write_table(pq.read_table(path).drop_columns(["deps", "kind"]), path)
    (footer,) = file_footer(0, "run", str(path), SCHEMA_VERSION)
    assert "lacks the columns ['kind', 'deps']" in footer["refusal"]


def test_a_column_of_another_type_refuses_its_run_and_no_other(run: Path, tmp_path: Path):
    path = sorted(run.glob("*.parquet"))[0]
    table = pq.read_table(path)
    pq.write_table(table.set_column(1, "node", table.column("node").cast(pa.string())), path)
    other = write_trace(tmp_path / "other", clean_trace(2))
    found = verify(None, [run, other])
    assert [one.verdict for one in found.runs] == ["REFUSED", "VALID"]
    assert "has string in column 'node' where this schema version has int64" in found.refused[0]
    assert found.verdict == "VALID"
    assert found.to_json()["runs"] == 1
