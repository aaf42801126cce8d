"""`cubecast check`: verdicts as text, JSON and exit codes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cubecast.cli import main
from cubecast.trace.writer import TraceWriter
from support.histories import read_history

HISTORIES = Path(__file__).parent.parent / "histories"


@pytest.fixture
def written(tmp_path):
    def write(name: str) -> str:
        history = read_history(HISTORIES / f"{name}.txt")
        with TraceWriter(tmp_path / "trace", history.trace.info) as writer:
            writer.write_all(history.trace.events)
        return str(tmp_path / "trace")

    return write


def run(*arguments: str):
    return CliRunner().invoke(main, ["check", *arguments])


@pytest.mark.parametrize(
    ("name", "code", "last"),
    [
        ("valid/conversation", 0, "VALID: 2 messages, 6 deliveries"),
        ("violated/causal", 1, "VIOLATED: 2 messages, 4 deliveries"),
        ("unknown/no_quiescence", 3, "UNKNOWN: 1 messages, 0 deliveries"),
    ],
)
def test_verdicts_and_exit_codes(written, name, code, last):
    result = run(written(name))
    assert result.exit_code == code
    assert result.output.splitlines()[-1] == last


def test_a_violation_shows_its_witness(written):
    result = run(written("violated/causal"), "--properties", "P7")
    expected = "  P7 in causal, node 2.0, row 1: (1, 0, 1) is delivered before (0, 0, 1), which it depends on"
    assert expected in result.output.splitlines()


def test_json_and_nothing_else(written):
    result = run(written("violated/fifo"), "--json", "--properties", "P5")
    assert json.loads(result.output)["properties"]["P5"] == {"verdict": "VIOLATED", "violations": 1}


def test_shiviz(written, tmp_path):
    run(written("valid/conversation"), "--shiviz", str(tmp_path / "log"))
    assert (tmp_path / "log").read_text().startswith("node0.0 {")


def test_bad_input_is_one_line_and_exit_code_2(tmp_path):
    result = run(str(tmp_path / "nowhere"))
    assert result.exit_code == 2
    assert result.output.startswith("cubecast: ")
    assert len(result.output.splitlines()) == 1
