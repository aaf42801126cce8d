"""A late subscriber reads the log into live traffic, and the reference checker judges what it got with the rest."""

import json

import pytest
from bench.log_replay import READERS, measure, trace_of

from cubecast.check import Verdict, check_directory
from support.running import run

MESSAGES = 2_000


@pytest.fixture(scope="module")
def talk(tmp_path_factory):
    directory = tmp_path_factory.mktemp("replay")
    result = run(measure(directory, MESSAGES, 32))
    return directory, result


def test_every_promise_is_kept_over_the_seam(talk):
    directory, result = talk
    assert result.live > 0 and min(result.inside.messages, result.outside.messages) >= MESSAGES
    report = check_directory(trace_of(directory, MESSAGES))
    assert report.verdict is Verdict.VALID and {"P1", "P8"} <= report.verdicts.keys()
    assert report.deliveries >= 5 * report.messages


def exchange(lines):
    """The first two lines next to each other that tell of different publishers."""
    place = next(at for at in range(len(lines) - 1) if lines[at][3] != lines[at + 1][3])
    lines[place : place + 2] = reversed(lines[place : place + 2])


BROKEN = {
    "a batch is left out": (lambda lines: lines.pop(7), {"P6", "P8"}),
    "a batch comes twice": (lambda lines: lines.insert(9, lines[7]), {"P2"}),
    "an effect comes before its cause": (exchange, {"P7", "P8"}),
    "the end is missing": (lambda lines: lines.pop(), {"P3", "P4"}),
}


@pytest.mark.parametrize("damage, found", BROKEN.values(), ids=BROKEN)
def test_a_broken_seam_would_be_seen(talk, tmp_path, damage, found):
    directory, _ = talk
    journals = tmp_path / "journals"
    journals.mkdir()
    for path in (directory / "journals").iterdir():
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        if path.name.startswith(f"node-{READERS[0]:05d}"):
            told, delivered, end = lines[:2], lines[2:-1], lines[-1:]
            damage(delivered)
            lines = told + delivered + end
        (journals / path.name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert found <= check_directory(trace_of(tmp_path, MESSAGES)).violated()
