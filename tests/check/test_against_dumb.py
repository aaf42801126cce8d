"""The checker agrees with the definitions written out as sets, on small traces that break nearly everything."""

from collections import Counter

import pytest

from cubecast.check import Verdict, check_trace
from support.dumb_checker import Dumb
from support.model_traces import clean_trace
from support.random_traces import random_trace

BLOCKS = 10
PER_BLOCK = 150


@pytest.mark.parametrize("block", range(BLOCKS))
def test_agrees_on_broken_traces(block):
    for seed in range(block * PER_BLOCK, (block + 1) * PER_BLOCK):
        trace = random_trace(seed)
        report = check_trace(trace)
        assert report.verdicts["K0"] is Verdict.VALID, (seed, report.witnesses)
        assert report.violated() & Dumb.PREDICATES.keys() == Dumb(trace.events).violated(), f"random_trace({seed})"


def test_the_random_traces_break_and_keep_every_property():
    seen = Counter(name for seed in range(300) for name in Dumb(random_trace(seed).events).violated())
    assert all(10 <= seen[name] <= 290 for name in Dumb.PREDICATES), seen


def test_agrees_on_clean_traces():
    for seed in range(30):
        trace = clean_trace(seed, nodes=3, steps=40)
        if all(event.incarnation == 0 for event in trace.events):
            assert Dumb(trace.events).violated() - {"P9a"} == set()


def test_a_missing_end_hides_nothing_that_was_certain():
    """What is violated in a trace with short logs stays violated when the logs are ended in any way."""
    for seed in range(150):
        short = random_trace(seed, short=True)
        violated = check_trace(short).violated()
        ends = {}
        for event in short.events:
            if event.seq >= ends.get(event.node, event).seq:
                ends[event.node] = event
        for kind in ("quiescent", "crash", "stop"):
            more = [
                event._replace(seq=event.seq + 1, kind=kind, topic=None, cut=None, deps=None)
                for event in ends.values()
                if event.kind not in ("quiescent", "crash", "stop")
            ]
            ended = check_trace(short._replace(events=short.events + more))
            assert violated <= ended.violated(), seed
