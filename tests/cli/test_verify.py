"""`cubecast verify`: exit codes, one JSON object, one clear line for bad input."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cubecast.cli import main
from support.agreeing import write_trace
from support.histories import read_history
from support.model_traces import clean_trace

HISTORIES = Path(__file__).parents[1] / "histories"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


def test_valid_traces(spark, tmp_path: Path):
    directory = write_trace(tmp_path / "run", clean_trace(1))
    result = run(directory, "--json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["verdict"] == "VALID"
    assert set(report) >= {"verdict", "properties", "witnesses", "deliveries", "messages", "runs", "wall_seconds"}


def test_a_violation_for_people_and_as_parquet(spark, tmp_path: Path):
    directory = write_trace(tmp_path / "run", read_history(HISTORIES / "violated" / "causal.txt").trace)
    result = run(directory, "--properties", "P5,P7", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "VIOLATED" in result.stdout
    assert "P7" in result.stdout
    found = spark.read.parquet(str(tmp_path / "out" / "witnesses"))
    assert [row["property"] for row in found.collect()] == ["P7"]
    assert spark.read.parquet(str(tmp_path / "out" / "verdicts")).count() == 3
    again = run(directory, "--out", tmp_path / "out")
    assert again.exit_code == 2
    assert "exists; name another directory" in again.stderr


def test_a_trace_without_an_end_is_unknown(spark, tmp_path: Path):
    directory = write_trace(tmp_path / "run", read_history(HISTORIES / "unknown" / "no_quiescence.txt").trace)
    result = run(directory)
    assert result.exit_code == 3
    assert "UNKNOWN" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nowhere"], "does not exist"),
        (["--properties", "P99"], "there is no property P99"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: list[str], line: str):
    directory = write_trace(tmp_path / "run", clean_trace(1))
    result = run(*arguments, *([] if "nowhere" in arguments else [directory]))
    assert result.exit_code == 2
    assert line in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_help_shows_an_example():
    result = run("--help")
    assert result.exit_code == 0
    assert "cubecast verify out/run" in result.stdout
