"""Sweeps on Spark: same results however they are cut, nothing twice, and no worker's death is the end."""

import os
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cubecast.check import check_directory
from cubecast.errors import BadInput
from cubecast.experiments.sweep import run as run_module
from cubecast.experiments.sweep.grid import Sweep
from cubecast.experiments.sweep.progress import Snapshot
from cubecast.experiments.sweep.run import SweepFailedError, run_sweep
from cubecast.experiments.sweep.store import TIMING
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate
from support.sweep_points import executions, seen_mark

SIMULATIONS = Sweep(
    "small", grid={"protocol": ["vcube-ps", "srpt"], "nodes": [8, 16]}, parameters={"publishers": "50%"}, runs=3
)


def marked(tmp_path: Path, kind: str, values: range) -> tuple[Sweep, Path]:
    """A sweep over x whose executions leave marks."""
    marks = tmp_path / "marks"
    marks.mkdir()
    sweep = Sweep("marked", {"x": list(values)}, parameters={"marks": str(marks)}, point=f"support.sweep_points:{kind}")
    return sweep, marks


def rows(directory: Path) -> list[dict]:
    return pq.read_table(directory / "results.parquet").to_pylist()


def lasting(directory: Path) -> list[dict]:
    return [{name: value for name, value in row.items() if name not in TIMING} for row in rows(directory)]


def test_results_are_the_same_however_the_points_are_cut_into_tasks(spark, tmp_path: Path, monkeypatch):
    run_sweep(spark, SIMULATIONS, tmp_path / "batches")
    monkeypatch.setattr(run_module, "batches", lambda points, kind, cores: [(point,) for point in reversed(points)])
    run_sweep(spark, SIMULATIONS, tmp_path / "alone")
    assert lasting(tmp_path / "batches") == lasting(tmp_path / "alone")
    assert len({row["digest"] for row in rows(tmp_path / "alone")}) == 12
    row = rows(tmp_path / "alone")[-1]
    config = SimConfig(row["protocol"], row["nodes"], row["publishers"], seed=row["seed"])
    assert simulate(config)["digest"] == row["digest"], "a row is enough to repeat its run"


def test_finished_points_are_not_run_again_and_more_runs_are_added(spark, tmp_path: Path):
    sweep, marks = marked(tmp_path, "counted", range(4))
    first = run_sweep(spark, sweep, tmp_path / "out")
    assert (first.points, first.executed, first.reused) == (4, 4, 0)
    again = run_sweep(spark, sweep, tmp_path / "out")
    assert (again.executed, again.reused) == (0, 4)
    more = run_sweep(spark, Sweep(**{**vars(sweep), "runs": 2}), tmp_path / "out")
    assert (more.points, more.executed, more.reused) == (8, 4, 4)
    done = executions(marks)
    assert len(done) == len(set(done)) == 8
    assert [row["square"] for row in rows(tmp_path / "out")] == [0, 0, 1, 1, 4, 4, 9, 9]
    assert all(row["nested_seed"] == row["seed"] for row in rows(tmp_path / "out"))


@pytest.mark.parametrize("kind", ["dying", "IN_BATCHES"])
def test_a_killed_python_worker_is_survived(spark, tmp_path: Path, kind: str):
    sweep, marks = marked(tmp_path, kind, range(6))
    outcome = run_sweep(spark, sweep, tmp_path / "out")
    assert (outcome.executed, outcome.errors) == (6, 0)
    assert outcome.retried >= 1
    assert [row["square"] for row in rows(tmp_path / "out")] == [0, 1, 4, 9, 16, 25]
    attempts = {name: executions(marks).count(name) for name in executions(marks)}
    assert sorted(attempts.values()) == [1, 1, 1, 1, 1, 2], "only the point that died is executed twice"


def test_a_python_worker_keeps_what_it_loaded_from_task_to_task(spark, tmp_path: Path):
    sweep, _ = marked(tmp_path, "counted", range(8))
    run_sweep(spark, sweep, tmp_path / "out")
    executed = sorted((row["worker"], row["executed_here"]) for row in rows(tmp_path / "out"))
    assert len({worker for worker, _ in executed}) <= 2
    assert len(set(executed)) == 8, "every worker counts on from task to task"


def test_an_error_of_a_point_is_a_row_and_not_the_end(spark, tmp_path: Path):
    sweep, marks = marked(tmp_path, "failing", range(4))
    outcome = run_sweep(spark, sweep, tmp_path / "out")
    assert outcome.errors == 2
    found = {row["x"]: (row["status"], row["error"], row["square"]) for row in rows(tmp_path / "out")}
    assert found[0] == ("ok", None, 0)
    assert found[3] == ("error", "ValueError: 3 is odd", None)
    assert outcome.failed[0]["error"] == "ValueError: 1 is odd"
    assert len(executions(marks)) == 2, "an error that would come again is not tried again"


@pytest.mark.parametrize(
    ("kind", "says"), [("broken_disk", "OSError: no space left for 0"), ("always_dying", "worker exited unexpectedly")]
)
def test_what_fails_in_every_attempt_ends_the_sweep_with_one_line(spark, tmp_path: Path, kind: str, says: str):
    sweep, _ = marked(tmp_path, kind, range(1))
    with pytest.raises(SweepFailedError, match=says) as caught:
        run_sweep(spark, sweep, tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert sweep.expand()[0].id in str(caught.value), "the point to blame is named"


def test_kept_traces_can_be_read_and_judged(spark, tmp_path: Path):
    sweep = Sweep("traced", {"nodes": [8, 16]}, parameters={"protocol": "vcube-ps"}, keep_traces=True)
    run_sweep(spark, sweep, tmp_path / "out")
    for row in rows(tmp_path / "out"):
        report = check_directory(tmp_path / "out" / "traces" / row["id"]).to_json()
        assert report["verdict"] == "VALID"
        assert report["deliveries"] == row["deliveries"] > 0
    assert len(list((tmp_path / "out" / "traces").iterdir())) == 2


def test_an_interrupt_leaves_a_directory_to_resume_from(spark, tmp_path: Path):
    sweep, marks = marked(tmp_path, "a_few_first", range(12))
    seen: list[Snapshot] = []

    def interrupt(snapshot: Snapshot) -> None:
        if snapshot.finished >= 2 and not any(one.finished >= 2 for one in seen):
            os.kill(os.getpid(), signal.SIGINT)
        seen.append(snapshot)

    with pytest.raises(KeyboardInterrupt):
        run_sweep(spark, sweep, tmp_path / "out", interrupt)
    assert not (tmp_path / "out" / "results.parquet").exists()
    finished = {path.stem for path in (tmp_path / "out" / "points").glob("*.json")}
    assert 2 <= len(finished) < 12
    seen_mark(marks).touch()
    outcome = run_sweep(spark, sweep, tmp_path / "out")
    assert outcome.reused >= len(finished)
    assert len(rows(tmp_path / "out")) == 12
    again = [name for name in set(executions(marks)) if executions(marks).count(name) > 1]
    of_finished = [row for row in rows(tmp_path / "out") if row["id"] in finished]
    assert not {f"{row['x']}-{row['seed']}" for row in of_finished} & set(again)


def test_who_watches_sees_the_running_points_and_since_when(spark, tmp_path: Path):
    sweep, marks = marked(tmp_path, "watched", range(6))
    seen: list[Snapshot] = []

    def listen(snapshot: Snapshot) -> None:
        seen.append(snapshot)
        if snapshot.running:
            seen_mark(marks).touch()

    run_sweep(spark, sweep, tmp_path / "out", listen)
    ids = {point.id for point in sweep.expand()}
    running = [one for snapshot in seen for one in snapshot.running]
    assert running
    assert {one.point for one in running} <= ids
    assert all(0 <= snapshot.at - one.since < 60 for snapshot in seen for one in snapshot.running)
    assert max(snapshot.tasks for snapshot in seen) == 6
    assert (seen[-1].finished, seen[-1].total, seen[-1].running) == (6, 6, ())


def test_another_sweep_into_the_same_directory_is_refused(spark, tmp_path: Path):
    sweep, _ = marked(tmp_path, "counted", range(1))
    run_sweep(spark, sweep, tmp_path / "out")
    with pytest.raises(BadInput, match="holds another sweep"):
        run_sweep(spark, SIMULATIONS, tmp_path / "out")
