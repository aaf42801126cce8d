"""Golden histories: tiny traces filed by the verdict they must get."""

from pathlib import Path

import pytest

from cubecast.check import check_trace
from cubecast.check.verdict import Violation
from support.histories import read_history

HISTORIES = sorted((Path(__file__).parent.parent / "histories").glob("*/*.txt"))


def test_every_verdict_has_histories():
    assert {path.parent.name for path in HISTORIES} == {"valid", "violated", "unknown"}
    assert len(HISTORIES) >= 20


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_history(path):
    history = read_history(path)
    assert history.verdict == path.parent.name.upper(), "filed in the wrong directory"
    report = check_trace(history.trace)
    assert report.verdict == history.verdict, report.to_json()
    assert report.violated() == history.violated
    first = _spell(report.witnesses[0]) if report.witnesses else None
    assert first == history.witness


def _spell(witness: Violation) -> str:
    node = f"{witness.node}.{witness.incarnation}" if witness.incarnation else f"{witness.node}"
    mid = "-"
    if witness.message is not None:
        source, incarnation, counter = witness.message
        mid = f"{source}.{incarnation}:{counter}" if incarnation else f"{source}:{counter}"
    return f"{witness.promise} {node}@{witness.seq} {mid}"
