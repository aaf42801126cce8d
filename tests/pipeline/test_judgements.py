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


def later_incarnations(trace: Trace) -> Trace:
    """The same trace with other incarnations: half of the nodes are not in their first life."""

    def life(node: int, incarnation: int) -> int:
        return incarnation + 3 * (node % 2)

    def renamed(ids):
        return ids and tuple(one._replace(incarnation=life(one.source, one.incarnation)) for one in ids)

    events = []
    for event in trace.events:
        lives = {
            "incarnation": life(event.node, event.incarnation),
            "deps": renamed(event.deps),
            "cut": renamed(event.cut),
            "messages": renamed(event.messages),
        }
        if event.source is not None and event.source_incarnation is not None:
            lives["source_incarnation"] = life(event.source, event.source_incarnation)
        events.append(event._replace(**lives))
    return Trace(trace.info, events)


@pytest.fixture
def large_paths(monkeypatch) -> None:
    """As if every trace were too large for one block, and worth pruning."""
    for name in ("causality", "order"):
        monkeypatch.setattr(f"cubecast.pipeline.{name}.CELLS_AT_ONCE", 1)
    monkeypatch.setattr("cubecast.pipeline.assemble.CHECKS_WORTH_SAVING", 0)


@pytest.mark.parametrize("seed", range(2))
def test_the_paths_of_large_traces_judge_alike(large_paths, seed: int):
    for path in HISTORIES:
        assert differences(read_history(path).trace) == [], path.stem
    for one in range(seed * 40, seed * 40 + 40):
        trace = random_trace(one, short=one % 3 == 0)
        assert differences(later_incarnations(trace) if one % 2 else trace) == [], f"seed {one}"
    clean = clean_trace(seed, total_order=True)
    for name, mutator in MUTATORS.items():
        events = mutator.apply(clean.events, random.Random(seed))
        if events is not None:
            assert differences(Trace(clean.info, events)) == [], f"{name}, seed {seed}"


@pytest.mark.parametrize("seed", range(0, 90, 30))
def test_later_incarnations_are_judged_alike(seed: int):
    for one in range(seed, seed + 30):
        first = random_trace(one, short=one % 3 == 0)
        later = later_incarnations(first)
        assert differences(later) == [], f"seed {one}"
        expected, found = judge(first, ALL_PROMISES), judge(later, ALL_PROMISES)
        assert found.properties == expected.properties, f"seed {one}: names of lives decide nothing"
