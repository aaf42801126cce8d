"""What a command can see is wrong it says at once, in one line: Spark takes seconds to start, a paper minutes."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from cubecast.cli import main

LONG = ("metrics", "sweep", "report", "verify", "reproduce", "swarm", "demo", "bench", "workload")
BAD = {
    "metrics": (["metrics", "nowhere", "--master", "local[1]"], "does not exist"),
    "verify": (["verify", "nowhere", "--master", "local[1]"], "does not exist"),
    "verify, its directory": (["verify", "run", "--out", "taken", "--master", "local[1]"], "taken exists"),
    "report": (["report", "nowhere", "--master", "local[1]"], "does not exist"),
    "sweep, its name": (["sweep", "nowhere"], "nowhere"),
    "sweep, its runs": (["sweep", "vcube-ps-subscribers", "--runs", "0", "--out", "new"], "at least 1 run"),
    "sweep, its directory": (["sweep", "vcube-ps-subscribers", "--out", "taken"], "taken"),
    "reproduce, its name": (["reproduce", "vcube-ps", "nowhere"], "nowhere"),
    "reproduce, its runs": (["reproduce", "--runs", "0"], "runs must be at least 1"),
    "reproduce, its directory": (["reproduce", "vcube-ps", "--quick", "--out", "file"], "file"),
    "swarm": (["swarm", "--protocol", "nowhere"], "nowhere"),
    "swarm, how many": (["swarm", "--schedules", "0"], "at least one schedule"),
    "swarm, a schedule": (["swarm", "--replay", "{}"], "schedule"),
    "swarm, live": (["swarm", "--live", "taken", "--schedules", "3", "--spark"], "seed-3 exists"),
    "demo": (["demo", "--out", "file"], "file"),
    "universe": (["workload", "universe", "nowhere.csv", "--out", "new"], "there is no log"),
    "universe, its format": (["workload", "universe", "file", "--out", "new"], "does not say its format"),
    "universe, its directory": (["workload", "universe", "log.csv", "--out", "taken"], "taken"),
    "synthetic": (["workload", "synthetic", "--users", "0", "--out", "new"], "users must be at least 1"),
    "synthetic, its directory": (["workload", "synthetic", "--out", "taken"], "taken"),
    "matched": (["workload", "matched", "--topics", "0", "--out", "new"], "at least 1 topic"),
    "matched, its directory": (["workload", "matched", "--out", "taken"], "taken"),
    "overlays": (["workload", "overlays", "nowhere", "--out", "new"], "there is no table nowhere"),
    "overlays, their views": (["workload", "overlays", "file", "--view", "0", "--out", "new"], "1 link or more"),
    "overlays, their walks": (["workload", "overlays", "file", "--ttl", "31", "--out", "new"], "0 to 30 hops"),
    "overlays, their directory": (["workload", "overlays", "file", "--out", "taken"], "taken"),
    "publications": (["workload", "publications", "--topics", "0", "--out", "new"], "topics must be at least 1"),
    "publications, its directory": (["workload", "publications", "--out", "taken"], "taken"),
}


@pytest.mark.parametrize("case", BAD)
def test_it_is_refused_before_anything_is_begun(case: str, tmp_path: Path, monkeypatch):
    def must_not_start(*_: object, **__: object) -> None:
        raise AssertionError("something long was begun")

    for name in (
        "cubecast.pipeline.session.spark_session",
        "cubecast.experiments.live_faults.run.run_schedule",
        "cubecast.experiments.parallel.ProcessPoolExecutor",
        "cubecast.experiments.demo.converse",
    ):
        monkeypatch.setattr(name, must_not_start)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("something")
    (tmp_path / "log.csv").write_text("user,item\na,b\n")
    (tmp_path / "taken" / "seed-3").mkdir(parents=True)
    (tmp_path / "taken" / "something").write_text("else")
    words, told = BAD[case]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stdout) == (2, ""), (done.output, done.exception)
    (line,) = done.stderr.splitlines()
    assert told in line


@pytest.mark.parametrize("command", LONG)
def test_its_help_says_how_long_it_takes(command: str):
    text = " ".join(CliRunner().invoke(main, [command, "--help"]).stdout.split())
    assert re.search(r"\btakes?\b[^.]*(\d+ s\b|minutes?\b|seconds?\b)", text, re.IGNORECASE), text
