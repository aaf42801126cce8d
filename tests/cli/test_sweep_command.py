"""`cubecast sweep`: exit codes, one line for bad input, JSON, resuming."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from cubecast.cli import main

SMALL = """
[sweep]
name = "tiny"
[parameters]
publishers = 1
[grid]
protocol = ["vcube-ps", "srpt"]
nodes = [8]
"""


def sweep(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["sweep", *map(str, arguments)])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(SMALL)
    return path


def test_help_shows_an_example_and_the_named_sweeps():
    text = sweep("--help").output
    assert "--runs 2 --out out/first" in text
    assert "vcube-ps-publishers-large" in text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("nodes = [8]", "nodes = [9]"), "9"),
        (("nodes = [8]", "nodes = []"), "no values for nodes"),
        (("nodes = [8]", "knots = [8]"), "no parameter 'knots'"),
        (("[grid]", "[grid"), "is not TOML"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2_and_leaves_nothing(small: Path, change: tuple[str, str], says: str):
    small.write_text(SMALL.replace(*change))
    result = sweep(small, "--out", small.parent / "out")
    assert result.exit_code == 2
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (small.parent / "out").exists()


def test_a_sweep_runs_resumes_and_refuses_another_in_its_place(spark, small: Path):
    out = small.parent / "out"
    first = json.loads(sweep(small, "--out", out, "--runs", 2, "--json").stdout)
    assert (first["points"], first["executed"], first["errors"]) == (4, 4, 0)
    assert [row["runs"] for row in first["means"]] == [2, 2]
    assert len(pq.read_table(first["results"])) == 4
    again = sweep(small, "--out", out, "--runs", 3)
    assert again.exit_code == 0
    assert "6 points: 2 run now" in again.output
    assert "4 found finished" in again.output
    refused = sweep(small, "--out", out, "--seed", 2)
    assert refused.exit_code == 2
    assert "holds another sweep (seed is 1 there, 2 here)" in refused.stderr


def test_points_that_fail_are_told_and_exit_code_1(spark, small: Path):
    small.write_text('[sweep]\npoint="support.sweep_points:failing"\n[parameters]\nmarks="."\n[grid]\nx=[1]\n')
    result = sweep(small, "--out", small.parent / "out")
    assert result.exit_code == 1
    assert "ValueError: 1 is odd" in result.output
