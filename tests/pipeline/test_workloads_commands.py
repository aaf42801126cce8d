"""`cubecast workload` from the command line: a synthetic table, and a universe of it."""

import json
from pathlib import Path

from click.testing import CliRunner

from cubecast.cli import main


def run(*arguments: object):
    return CliRunner().invoke(main, ["workload", *map(str, arguments)], env={"COLUMNS": "160"})


def test_a_synthetic_table_and_a_universe_of_it(spark, tmp_path: Path) -> None:
    grid = tmp_path / "grid"
    made = run("synthetic", "--users", 80, "--topics", 8, "--least-radius", 0.1, "--out", grid, "--seed", 3)
    assert made.exit_code == 0, made.output
    assert "seed 3 · written to" in made.stdout
    rows = spark.read.parquet(str(grid)).count()
    assert f"{rows:,} subscriptions" in made.stdout
    rules = ("--item", "topic", "--seeds", 100, "--least", 2, "--out", tmp_path / "universe", "--json")
    grown = run("universe", grid, *rules)
    assert grown.exit_code == 0, grown.output
    facts = json.loads(grown.stdout)
    assert facts["seed"] == 1
    assert facts["subscriptions"] == spark.read.parquet(str(tmp_path / "universe")).count() <= rows
    assert facts["subscribers_per_topic"]["mean"] >= 2


def test_a_load_of_publications(spark, tmp_path: Path) -> None:
    done = run("publications", "--publications", 2000, "--topics", 4, "--out", tmp_path / "load", "--json")
    assert done.exit_code == 0, done.output
    found = spark.read.parquet(str(tmp_path / "load"))
    assert (found.count(), found.columns) == (2000, ["publication", "time", "publisher", "rank"])
    busiest = found.where("rank = 1").count() / 2000
    assert json.loads(done.stdout)["busiest_topic_share"] == busiest


def test_bad_input_is_one_line_and_exit_code_two(spark, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("who,what\nann,a\n")
    full = tmp_path / "full"
    full.mkdir()
    (full / "something").touch()
    for arguments, complaint in (
        (("universe", tmp_path / "none.csv", "--out", tmp_path / "a"), "there is no log"),
        (("universe", log, "--out", tmp_path / "b"), "has no column user"),
        (("universe", log, "--out", full), "not an empty directory"),
        (("universe", log, "--seeds", 0, "--out", tmp_path / "c"), "at least one seed topic"),
        (("synthetic", "--users", 0, "--out", tmp_path / "d"), "users must be at least 1"),
        (("synthetic", "--conf", "nonsense", "--out", tmp_path / "e"), "is not KEY=VALUE"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2, arguments
        assert complaint in done.stderr
        assert "Traceback" not in done.stderr
