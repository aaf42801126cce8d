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


def test_overlays_of_a_matched_table(spark, tmp_path: Path) -> None:
    sizes = ("--users", 150, "--topics", 12, "--largest", 60, "--communities", 2)
    made = run("matched", *sizes, "--out", tmp_path / "table", "--json")
    assert made.exit_code == 0, made.output
    done = run("overlays", tmp_path / "table", "--rounds", 3, "--out", tmp_path / "overlays", "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["subscriptions"] == json.loads(made.stdout)["subscriptions"]
    assert facts["links"]["3"] < facts["links"]["0"] < facts["logical_links"]
    assert (facts["overlays"]["after"]["topics"], facts["overlays"]["after"]["strongly"]) == (12, 1.0)
    processes = spark.read.parquet(str(tmp_path / "overlays" / "processes"))
    assert processes.columns == ["user", "round", "topics", "logical", "links"]
    assert processes.count() == 2 * facts["users"]
    graphs = spark.read.parquet(str(tmp_path / "overlays" / "topics")).collect()
    assert {(row.topic, row.round) for row in graphs} == {(f"t{n:02}", r) for n in range(12) for r in (0, 3)}


def test_a_table_without_overlays_is_refused_with_file_and_row(spark, tmp_path: Path) -> None:
    for name, rows, options, complaint in (
        ("one", [("a", "x"), ("b", "x"), ("a", "y")], (), "row 3: topic y has 1 subscriber: an overlay has two"),
        ("small", [("a", "x"), ("b", "x")], ("--view", 2), "row 1: topic x has 2 subscribers: a view of 2 cannot"),
        ("holes", [("a", "x"), ("b", None)], (), "row 2: a subscription has a user and a topic"),
        ("none", [], (), "is empty"),
        ("twice", [("a", "x"), ("a", "x")], (), "two members or more"),
    ):
        table = tmp_path / name
        spark.createDataFrame(rows, "user string, topic string").coalesce(1).write.parquet(str(table))
        done = run("overlays", table, *options, "--out", tmp_path / "out")
        assert done.exit_code == 2, (done.output, done.exception)
        (line,) = done.stderr.splitlines()[-1:]
        assert complaint in line
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "out").exists() or name == "twice"


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
        (
            ("universe", log, "--user", "who", "--item", "what", "--least", 2, "--out", tmp_path / "empty"),
            "log.csv: the universe is empty: of the topics that 100 seeds lead to none has 2 subscribers",
        ),
        (("synthetic", "--users", 0, "--out", tmp_path / "d"), "users must be at least 1"),
        (("synthetic", "--conf", "nonsense", "--out", tmp_path / "e"), "is not KEY=VALUE"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2, arguments
        assert complaint in done.stderr.replace("\n", " ")
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "empty").exists(), "what failed is in nobody's way"
