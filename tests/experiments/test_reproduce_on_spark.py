"""A reproduction as tasks of a cluster of processes: the same ledger, and it goes on where it was killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cubecast.experiments.bootstrap import with_intervals
from cubecast.experiments.parallel import TASKS_PER_CORE, here, on_spark
from cubecast.experiments.reproduction import Effort, find_experiment

COMMAND = ["reproduce", "--quick", "--master", "local-cluster[2,1,1024]", "--json"]


def begin(arguments: list[str], home: str) -> "subprocess.Popen[str]":
    source = str(Path(sys.modules["cubecast"].__file__).parents[1])
    environment = os.environ | {"SPARK_HOME": home, "PYTHONPATH": source}
    command = [sys.executable, "-m", "cubecast", *COMMAND, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ledger(report):
    return [{name: row[name] for name in ("claim", "ours", "verdict", "interval")} for row in report["rows"]]


class Session:
    """Counts what is asked of it at a time."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.defaultParallelism = 2
        self.asked: list[int] = []

    def parallelize(self, points, tasks):
        assert len(points) == tasks
        self.asked.append(tasks)
        self.points = points
        return self

    def map(self, function):
        self.done = list(map(function, self.points))
        return self

    def collect(self):
        return self.done


def test_a_cluster_is_given_some_tasks_at_a_time():
    session, points = Session(), [{"x": x} for x in range(40)]
    assert list(on_spark(session)(dict, points)) == points
    assert session.asked == [2 * TASKS_PER_CORE] * 2 + [8]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("experiment", ["locaps", "vcube-pb", "vcube-ps"])
def test_the_ledger_is_the_one_of_this_machine(experiment, tmp_path: Path, spark_home: str):
    done = begin([experiment, "--runs", "2"], spark_home)
    printed, errors = done.communicate(timeout=900)
    assert done.returncode in (0, 1), errors[-3000:]
    (there,) = json.loads(printed)["experiments"]
    expected = with_intervals(find_experiment(experiment), Effort(runs=2, quick=True), here)
    assert ledger(there) == ledger(json.loads(json.dumps(expected)))


@pytest.mark.slow
@pytest.mark.spark
def test_what_was_done_before_a_kill_is_not_done_again(tmp_path: Path, spark_home: str):
    points = tmp_path / "out" / "points"
    killed = begin(["locaps", "--out", str(tmp_path / "out")], spark_home)
    assert killed.stderr is not None
    said = next((line for line in killed.stderr if points.is_dir() and any(points.glob("*.json"))), None)
    assert said is not None, "it ended before it said that it goes on"
    killed.kill()
    killed.communicate()
    before = {path.name: path.stat().st_mtime_ns for path in points.glob("*.json")}
    again = begin(["locaps", "--out", str(tmp_path / "out")], spark_home)
    printed, errors = again.communicate(timeout=900)
    assert again.returncode == 0, errors[-3000:]
    after = {path.name: path.stat().st_mtime_ns for path in points.glob("*.json")}
    assert before.items() < after.items()
    (report,) = json.loads(printed)["experiments"]
    assert ledger(report) == ledger(
        json.loads(json.dumps(with_intervals(find_experiment("locaps"), Effort(quick=True), here)))
    )
