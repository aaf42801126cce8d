"""P14 to P16: processes that live through suspicions. Two processes, p at node 0 and q at node 1, which is held faulty
and goes on as another incarnation; both judges decide every story."""

import pytest

from cubecast.check.checker import check_trace
from cubecast.check.verdict import Verdict
from cubecast.ids import MessageId
from cubecast.sim.swarm import draw
from cubecast.sim.swarm_run import run
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.reader import Trace
from cubecast.trace.schema import Kind
from support.agreeing import disagreements

PROMISES = ("K0", "P14", "P15", "P16")


def log(node, incarnation, *rows):
    """(kind, columns) each; numbered, from `start` to `quiescent` or `stop`."""
    return [Event(node, incarnation, seq, float(seq), str(kind), **columns) for seq, (kind, columns) in enumerate(rows)]


def about(kind, counter, incarnation=0, **more):
    return kind, {"topic": "t", "source": 0, "source_incarnation": incarnation, "counter": counter, **more}


START, END, LEFT = (Kind.START, {}), (Kind.QUIESCENT, {}), (Kind.STOP, {})
SUBSCRIBE, SUBSCRIBED = (Kind.SUBSCRIBE, {"topic": "t"}), (Kind.SUBSCRIBED, {"topic": "t", "cut": ()})
RESUMED = (Kind.START, {"source": 1, "source_incarnation": 0})
FROM_1 = (Kind.CUT, {"topic": "t", "cut": (MessageId(0, 0, 1),)})


def story(second_life, publisher=(), resumed=RESUMED):
    """p publishes 1, 2 and 3; q was handed 1 in its first life, and this in its second."""
    published = [about(Kind.PUBLISH, counter, deps=()) for counter in (1, 2, 3)]
    events = [
        *log(0, 0, START, *published, *publisher, END),
        *log(1, 0, START, SUBSCRIBE, SUBSCRIBED, about(Kind.DELIVER, 1), LEFT),
        *log(1, 1, resumed, SUBSCRIBE, SUBSCRIBED, FROM_1, *second_life, END),
    ]
    return Trace(RunInfo("story", "none", PROMISES, nodes=2), events)


ACKNOWLEDGED = about(Kind.ACKNOWLEDGED, 2)
TOLD = about(Kind.UNDELIVERED, 2, peer=1)
STORIES = {
    "everything is delivered": (story([about(Kind.DELIVER, 2), about(Kind.DELIVER, 3)], [ACKNOWLEDGED]), set()),
    "a silent loss": (story([]), {"P14"}),
    "a silent loss in the middle": (story([about(Kind.DELIVER, 3)]), {"P14"}),
    "a gap after what follows": (story([about(Kind.DELIVER, 3), about(Kind.GAP, 2)], [TOLD]), {"P14"}),
    "a gap, and the publisher is told": (story([about(Kind.GAP, 2), about(Kind.DELIVER, 3)], [TOLD]), set()),
    "a gap, and nobody tells": (story([about(Kind.GAP, 2), about(Kind.DELIVER, 3)]), {"P16"}),
    "told twice": (story([about(Kind.GAP, 2), about(Kind.DELIVER, 3)], [TOLD, TOLD]), {"P16"}),
    "acknowledged and lost": (story([about(Kind.GAP, 2), about(Kind.DELIVER, 3)], [ACKNOWLEDGED, TOLD]), {"P15"}),
    "another process at the same node": (story([], resumed=START), set()),
}


@pytest.mark.parametrize("name", STORIES)
def test_what_the_reference_says(name):
    trace, violated = STORIES[name]
    report = check_trace(trace)
    assert report.violated() == violated
    assert report.verdict is (Verdict.VIOLATED if violated else Verdict.VALID)


def test_without_a_living_suspect_it_is_vacuous():
    nobody = check_trace(STORIES["another process at the same node"][0])
    assert {"P14", "P15", "P16"} <= set(nobody.vacuous)
    told = check_trace(STORIES["everything is delivered"][0])
    assert (told.premises["P14"], told.premises["P15"]) == (3, 1) and told.vacuous == ["P16"]


def test_both_judges_agree(tmp_path):
    traces = [trace for trace, _ in STORIES.values()]
    for seed in range(12):
        outcome = run(draw("cubecast", seed), careful=False)
        traces.append(Trace(outcome.info, outcome.events))
    assert disagreements(None, tmp_path, traces, PROMISES) == []


def test_worlds_with_suspicions_give_occasions():
    """The judges see what they are for: in drawn worlds living processes are suspected, and of what was published
    meanwhile some is never heard of."""
    reports = []
    for seed in range(20):
        outcome = run(draw("cubecast", seed), careful=False)
        reports.append(check_trace(Trace(outcome.info, outcome.events), PROMISES))
    assert sum(report.premises["P14"] for report in reports) > 100
