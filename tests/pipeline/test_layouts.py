"""However the rows lie in files, the verdict is the same; what is missing makes it UNKNOWN."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cubecast.pipeline import layout
from cubecast.pipeline.verify import verify
from cubecast.trace.reader import Trace
from cubecast.trace.schema import RUN_FILE
from cubecast.trace.writer import table_of
from support.agreeing import write_trace
from support.histories import read_history
from support.model_traces import ALL_PROMISES, clean_trace
from support.without_spark import judge

CAUSAL = Path(__file__).parents[1] / "histories" / "violated" / "causal.txt"


def traces() -> list[Trace]:
    """One that keeps all promises and one that does not."""
    return [clean_trace(5, total_order=True), read_history(CAUSAL).trace]


def rows_out_of_order(directory: Path, table: pa.Table) -> None:
    places = list(range(table.num_rows))
    random.Random(1).shuffle(places)
    pq.write_table(table.take(pa.array(places, pa.int64())), directory / "all.parquet")


def many_small_files(directory: Path, table: pa.Table) -> None:
    for number, start in enumerate(range(0, table.num_rows, 7)):
        pq.write_table(table.slice(start, 7), directory / f"part-{number}.parquet")


def one_row_group_for_everybody(directory: Path, table: pa.Table) -> None:
    pq.write_table(table.sort_by("time"), directory / "all.parquet")


def every_node_in_several_files(directory: Path, table: pa.Table) -> None:
    for part in range(3):
        rows = [place for place in range(table.num_rows) if place % 3 == part]
        pq.write_table(table.take(pa.array(rows)).sort_by([("node", "descending")]), directory / f"{part}.parquet")


def no_statistics(directory: Path, table: pa.Table) -> None:
    pq.write_table(table, directory / "all.parquet", write_statistics=False, use_dictionary=False)


def other_widths(directory: Path, table: pa.Table) -> None:
    for name, kind in {
        "node": pa.int32(),
        "incarnation": pa.int64(),
        "source": pa.int32(),
        "bytes": pa.int64(),
    }.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, table.column(name).cast(kind))
    pq.write_table(table, directory / "all.parquet")


LAYOUTS = [
    rows_out_of_order,
    many_small_files,
    one_row_group_for_everybody,
    every_node_in_several_files,
    no_statistics,
    other_widths,
]


def lay_out(directory: Path, trace: Trace, write: Callable[[Path, pa.Table], None]) -> Path:
    directory.mkdir()
    (directory / RUN_FILE).write_text(json.dumps(trace.info.to_json()))
    write(directory, table_of(trace.info.run, trace.events))
    return directory


def differences(spark, directories: list[Path], expected: list[Trace]) -> list[str]:
    """Directories whose properties are judged otherwise than the trace in memory."""
    runs = verify(spark, directories, ALL_PROMISES).runs
    known = [judge(trace, ALL_PROMISES).properties for trace in expected]
    return [run.run.directory for run, one in zip(runs, known, strict=True) if run.properties != one]


def test_every_layout_in_one_call(spark, tmp_path: Path):
    pairs = [(write, trace) for write in LAYOUTS for trace in traces()]
    named = [
        (write, Trace(replace(info, run=f"run-{number}"), events))
        for number, (write, (info, events)) in enumerate(pairs)
    ]
    directories = [lay_out(tmp_path / trace.info.run, trace, write) for write, trace in named]
    assert differences(spark, directories, [trace for _, trace in named]) == []


def test_rows_are_shuffled_when_files_mix_too_many_nodes(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(layout, "ROWS_READ_TOGETHER", 10)
    directories = [lay_out(tmp_path / str(n), trace, rows_out_of_order) for n, trace in enumerate(traces())]
    tidy = write_trace(tmp_path / "tidy", clean_trace(6))
    assert differences(spark, [*directories, tidy], [*traces(), clean_trace(6)]) == []


@pytest.mark.parametrize("together", [10, 1_000_000])
def test_several_runs_in_the_same_files(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int):
    """A row belongs to the run it names, if that run is being judged as well."""
    monkeypatch.setattr(layout, "ROWS_READ_TOGETHER", together)
    named = [Trace(replace(info, run=f"run-{n}"), events) for n, (info, events) in enumerate(traces())]
    everything = pa.concat_tables(table_of(trace.info.run, trace.events) for trace in named).sort_by("time")
    first = lay_out(tmp_path / "0", named[0], lambda directory, _: rows_out_of_order(directory, everything))
    second = lay_out(tmp_path / "1", named[1], lambda directory, table: rows_out_of_order(directory, table.slice(0, 0)))
    assert differences(spark, [first, second], named) == []
    (alone,) = verify(spark, [first]).runs
    assert "holds rows of run 'run-1' while its header says 'run-0'" in str(alone.refused)


def test_rows_that_are_there_twice_contradict_each_other(spark, tmp_path: Path):
    directory = write_trace(tmp_path / "run", clean_trace(5))
    copied = sorted(directory.glob("*.parquet"))[0]
    (directory / "copy.parquet").write_bytes(copied.read_bytes())
    report = verify(spark, [directory]).to_json()
    assert report["properties"].pop("K0")["verdict"] == "VIOLATED"
    assert {one["verdict"] for one in report["properties"].values()} == {"UNKNOWN"}


def remove_a_file(directory: Path) -> None:
    sorted(directory.glob("*.parquet"))[0].unlink()


def truncate_a_file(directory: Path) -> None:
    path = sorted(directory.glob("*.parquet"))[0]
    path.write_bytes(path.read_bytes()[:-20])


def break_a_page(directory: Path) -> None:
    path = sorted(directory.glob("*.parquet"))[0]
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)


def forget_whose_rows_they_are(directory: Path) -> None:
    path = sorted(directory.glob("*.parquet"))[0]
    table = pq.read_table(path)
    nothing = pa.nulls(table.num_rows, pa.int32())
    pq.write_table(table.set_column(1, pa.field("node", pa.int32()), nothing), path)


def lose_all_rows(directory: Path) -> None:
    for path in directory.glob("*.parquet"):
        pq.write_table(pq.read_table(path).slice(0, 0), path)


DAMAGE = [remove_a_file, truncate_a_file, break_a_page, forget_whose_rows_they_are, lose_all_rows]


def test_partial_data_is_unknown_and_never_valid(spark, tmp_path: Path):
    """Damage to one run leaves the verdict on its neighbours alone, however they are read together."""
    for damage in DAMAGE:
        damage(write_trace(tmp_path / damage.__name__, clean_trace(5)))
    good = write_trace(tmp_path / "good", clean_trace(5))
    runs = verify(spark, [*(tmp_path / damage.__name__ for damage in DAMAGE), good]).runs
    for damage, run in zip(DAMAGE, runs, strict=False):
        assert run.verdict == "UNKNOWN", damage.__name__
        assert {one.verdict for one in run.properties.values()} == {"UNKNOWN"}, damage.__name__
        assert all("\n" not in reason for reason in run.unknown_because)
    assert runs[-1].verdict == "VALID"
