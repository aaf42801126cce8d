"""The judgements agree with the reference checker, trace by trace, without Spark."""

import random
from pathlib import Path

import pytest

from cubecast.check import check_trace
from cubecast.check.mutate import MUTATORS
from cubecast.trace.reader import Trace
from support.agreeing import differences_between
from support.histories import read_history
from support.model_traces import ALL_PROMISES, clean_trace
from support.random_traces import random_trace
from support.without_spark import judge

HISTORIES = sorted((Path(__file__).parents[1] / "histories").rglob("*.txt"))


def differences(trace: Trace) -> list[str]:
    return differences_between(check_trace(trace, ALL_PROMISES), judge(trace, ALL_PROMISES))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_golden_histories(path: Path):
    history = read_history(path)
    assert differences(history.trace) == []
    found = judge(history.trace, history.trace.info.promises)
    assert found.verdict == history.verdict
    assert {name for name, one in found.properties.items() if one.verdict == "VIOLATED"} == history.violated


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("total_order", [False, True])
def test_clean_traces_and_their_mutants(seed: int, total_order: bool):
    clean = clean_trace(seed, total_order)
    assert judge(clean, clean.info.promises).verdict == "VALID"
    assert differences(clean) == []
    for name, mutator in MUTATORS.items():
        events = mutator.apply(clean.events, random.Random(seed)) if total_order or not mutator.total_order else None
        if events is not None:
            assert differences(Trace(clean.info, events)) == [], f"{name}, seed {seed}"


@pytest.mark.parametrize("seed", range(0, 300, 50))
def test_traces_in_which_anything_goes(seed: int):
    for one in range(seed, seed + 50):
        assert differences(random_trace(one, short=one % 3 == 0)) == [], f"seed {one}"


@pytest.mark.parametrize("seed", range(40, 60))
def test_no_false_alarm(seed: int):
    trace = clean_trace(seed, total_order=seed % 2 == 0)
    assert judge(trace, trace.info.promises).verdict == "VALID"
