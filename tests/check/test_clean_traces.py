"""No false alarm: whatever the all-seeing model does is VALID in every respect."""

import random
from collections import Counter

import pytest

from cubecast.check import Verdict, check_trace
from cubecast.trace.schema import Kind
from support.model_traces import clean_trace

BLOCKS = 6
PER_BLOCK = 100


@pytest.mark.parametrize("total_order", [False, True], ids=["causal", "total"])
@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_false_alarm(block, total_order):
    for seed in range(block * PER_BLOCK, (block + 1) * PER_BLOCK):
        report = check_trace(clean_trace(seed, total_order))
        assert report.verdict is Verdict.VALID, (f"clean_trace({seed}, {total_order})", report.witnesses)


def test_the_model_does_everything_worth_checking():
    kinds = Counter(event.kind for seed in range(100) for event in clean_trace(seed).events)
    rare = [kind for kind in Kind if kinds[kind] < 10 and kind not in (Kind.SUSPECT, Kind.VIEW, Kind.UNDELIVERED)]
    assert not rare, kinds


def test_the_model_is_a_function_of_its_seed():
    assert clean_trace(5) == clean_trace(5)
    assert clean_trace(5).events != clean_trace(6).events


def test_order_of_rows_in_the_trace_means_nothing():
    for seed in range(20):
        trace = clean_trace(seed)
        shuffled = list(trace.events)
        random.Random(seed).shuffle(shuffled)
        assert check_trace(trace._replace(events=shuffled)).verdict is Verdict.VALID


def test_time_means_nothing():
    for seed in range(20):
        trace = clean_trace(seed)
        timeless = [event._replace(time=-event.time) for event in trace.events]
        assert check_trace(trace._replace(events=timeless)).verdict is Verdict.VALID
