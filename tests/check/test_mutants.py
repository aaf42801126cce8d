"""Every mutant is killed: broken in one way, a clean trace is reported for exactly that kind of breakage."""

import random
from collections import Counter

import pytest

from cubecast.check import Verdict, check_trace
from cubecast.check.mutate import MUTATORS, Study
from support.model_traces import clean_trace

SEEDS = range(40)
ENOUGH = 4
"""A kind that hardly ever applies would prove nothing."""


@pytest.fixture(scope="module")
def studied():
    traces = [clean_trace(seed, total_order) for seed in SEEDS for total_order in (False, True)]
    return [(trace, Study(trace.events)) for trace in traces]


@pytest.fixture(scope="module")
def score():
    """Mutants made per kind; printed at the end as the mutation score."""
    made: Counter[str] = Counter()
    yield made
    print(f"\n{'kind of mutant':42}{'killed':>8}  expected")
    for name, mutator in MUTATORS.items():
        print(f"{name:42}{made[name]:8}  {' or '.join(sorted(mutator.violates)) or 'UNKNOWN'}")
    print(f"{len(MUTATORS)} kinds{'':34}{sum(made.values()):8}")


@pytest.mark.parametrize("name", MUTATORS)
def test_every_mutant_is_killed(name, studied, score):
    mutator = MUTATORS[name]
    for trace, study in studied:
        keeps_total_order = "P9a" in trace.info.promises
        if mutator.total_order and not keeps_total_order:
            continue
        events = mutator.mutate(study, random.Random(f"{trace.info.run} {name}"))
        if events is None:
            continue
        report = check_trace(trace._replace(events=events))
        if mutator.violates:
            assert report.violated() & mutator.violates, (trace.info.run, keeps_total_order, report.witnesses)
        else:
            assert report.verdict is Verdict.UNKNOWN, (trace.info.run, keeps_total_order, report.witnesses)
        score[name] += 1
    assert score[name] >= ENOUGH


def test_there_are_enough_kinds_and_they_cover_every_property():
    covered = set().union(*(mutator.violates for mutator in MUTATORS.values()))
    assert len(MUTATORS) >= 28
    assert covered == {"K0", "K1", "K2", "K3", "P1", "P1b", "P2", "P3", "P4", "P4u", "P5", "P6", "P7", "P8"} | {
        *("P9a", "P9b", "P9c", "P10", "P11", "P12", "P13", "P3b"),
    }


def test_mutators_are_pure():
    events = clean_trace(1).events
    before = list(events)
    for mutator in MUTATORS.values():
        first = mutator.apply(events, random.Random(0))
        assert first == mutator.apply(events, random.Random(0))
        assert first != events
    assert events == before
