"""The parts of a sweep that need no Spark: batches, the directory, the table of results."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cubecast.errors import BadInput
from cubecast.experiments.sweep.grid import Sweep
from cubecast.experiments.sweep.kinds import BATCH_SECONDS, PointKind, batches, checked_points
from cubecast.experiments.sweep.store import About, SweepStore, means, read_results, row_of, write_results

SWEEP = Sweep("s", grid={"seconds": [0.01, 5.0, 0.2]}, runs=100)


def by_seconds(parameters: dict) -> dict:
    return {"took": parameters["seconds"]}


KIND = PointKind(by_seconds, cost=lambda parameters: float(parameters["seconds"]))


def test_long_points_are_tasks_of_their_own_and_go_first_and_short_ones_share():
    points = SWEEP.expand()
    tasks = batches(points, KIND, cores=2)
    assert sorted(point.id for task in tasks for point in task) == sorted(point.id for point in points)
    assert all(len(task) == 1 and task[0].parameters["seconds"] == 5.0 for task in tasks[:100])
    assert all(sum(point.parameters["seconds"] for point in task) <= BATCH_SECONDS for task in tasks[100:])
    assert 20 <= len(tasks[100:]) <= 25


def test_few_short_points_still_keep_all_cores_busy():
    tasks = batches(Sweep("s", grid={"seconds": [0.001]}, runs=40).expand(), KIND, cores=2)
    assert len(tasks) >= 16


def test_without_a_guess_every_point_is_a_task():
    points = SWEEP.expand()
    assert batches(points, PointKind(by_seconds), cores=2) == [(point,) for point in points]


def test_traces_cannot_be_kept_where_none_are_written():
    with pytest.raises(BadInput, match="no traces to keep"):
        checked_points(Sweep("s", grid={"x": [1]}, point="support.sweep_points:counted", keep_traces=True))


def test_a_directory_belongs_to_one_sweep(tmp_path: Path):
    store = SweepStore(tmp_path / "out")
    store.open(SWEEP)
    store.open(replace(SWEEP, runs=2))
    with pytest.raises(BadInput, match=r"holds another sweep \(seed is 1 there, 2 here\)"):
        store.open(replace(SWEEP, seed=2))
    (tmp_path / "out" / "sweep.json").write_text("{")
    with pytest.raises(BadInput, match="damaged"):
        store.open(SWEEP)


def test_a_directory_with_something_else_is_refused(tmp_path: Path):
    (tmp_path / "letter.txt").touch()
    with pytest.raises(BadInput, match="holds no sweep"):
        SweepStore(tmp_path).open(SWEEP)
    with pytest.raises(BadInput, match="holds no sweep"):
        SweepStore(tmp_path / "letter.txt").open(SWEEP)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_what_an_interrupt_left_half_done_is_removed_and_finished_points_stay(tmp_path: Path):
    store = SweepStore(tmp_path / "out")
    store.open(SWEEP)
    done, begun, *_ = SWEEP.expand()
    store.begin(done, "w")
    store.finish(done, {"id": done.id})
    store.begin(begun, "w")
    store.temporary_trace(begun.id).mkdir()
    assert [one.point for one in store.running()] == [begun.id]
    store.open(SWEEP)
    assert store.running() == []
    assert store.finished() == {done.id}
    assert not list((tmp_path / "out" / "traces").iterdir())


ABOUT = About("s", 1, ["a"], ["c"])
RESULT = {
    "id": "p-0000",
    "run": 0,
    "seed": 5,
    "status": "ok",
    "error": None,
    "figures": {"latency": {"mean": 2.5, "p99": 3}, "nodes": 7},
    "timing": {"seconds": 0.1},
}


def test_a_row_is_flat_and_keeps_parameters_and_figures_apart():
    row = row_of("s", {"nodes": 8, "settings.brokers": 2}, RESULT)
    assert row["nodes"] == 8
    assert row["measured_nodes"] == 7
    assert row["settings_brokers"] == 2
    assert row["latency_mean"] == 2.5
    assert row["seconds"] == 0.1


def test_columns_of_several_types_fit_into_one_table(tmp_path: Path):
    rows = [{"a": 1, "b": 1, "c": [1, 2]}, {"a": 2.5, "b": "25%", "c": None}, {"a": None, "d": None}]
    write_results(rows, tmp_path / "r.parquet", ABOUT)
    table = pq.read_table(tmp_path / "r.parquet")
    assert table.column("a").to_pylist() == [1.0, 2.5, None]
    assert [json.loads(text) for text in table.column("b").to_pylist()[:2]] == [1, "25%"]
    assert table.column("c").to_pylist() == [[1, 2], None, None]
    assert table.schema.field("d").type == pa.string()
    assert [path.name for path in tmp_path.iterdir()] == ["r.parquet"]
    assert read_results(tmp_path / "r.parquet") == (ABOUT, table.to_pylist())


def test_a_table_that_no_sweep_wrote_is_refused(tmp_path: Path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "r.parquet")
    with pytest.raises(BadInput, match="not the result of a sweep"):
        read_results(tmp_path / "r.parquet")


def test_means_leave_failed_points_out_and_count_them():
    rows = [
        {"n": 8, "status": "ok", "x": 1},
        {"n": 8, "status": "error"},
        {"n": 8, "status": "ok", "x": 4},
        {"n": 16, "status": "error"},
    ]
    assert means(rows, ["n"], ["x"]) == [
        {"n": 8, "runs": 3, "errors": 1, "x": 2.5},
        {"n": 16, "runs": 1, "errors": 1, "x": None},
    ]
