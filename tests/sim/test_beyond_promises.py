"""What the swarm judges besides the promises: each judge sees what it is there for, and nothing in a clean run."""

from unittest.mock import patch

import pytest

from cubecast.experiments import beyond_promises as beyond
from cubecast.experiments.swarm import judge
from cubecast.protocol.cubecast.lifetime import Expelled, Lifetime
from cubecast.sim.faults import Crash, Partition, Restart
from cubecast.sim.schedule import Action, Schedule, Suspicion
from cubecast.sim.swarm import draw
from cubecast.sim.swarm_run import Asked, run
from cubecast.trace.event import Event
from support.histories import parse_rows


@pytest.fixture(scope="module")
def outcome():
    """A run with publications, joins and leaves."""
    return next(
        found
        for seed in range(1, 100)
        if (found := run(draw("cubecast", seed), careful=False)).asked.requests
        and any(event.kind == "unsubscribed" for event in found.events)
    )


def without(events: list[Event], index: int) -> list[Event]:
    return events[:index] + events[index + 1 :]


def test_a_publication_that_vanishes_is_missed(outcome):
    last = max(place for place, event in enumerate(outcome.events) if event.kind == "publish")
    assert beyond.requested_and_published(outcome.events, outcome.asked) == ()
    (reason,) = beyond.requested_and_published(without(outcome.events, last), outcome.asked)
    assert "never publishes" in reason


def test_publications_nobody_asked_for_or_in_another_order():
    asked = Asked(requests=[(1.0, 0, "t", (7, 8))], wishes={0: set()})
    wrong = "node 0\nstart\npublish t 0:1 ={}\npublish t 0:2 ={}\nquiescent"
    assert not beyond.requested_and_published(parse_rows(wrong.format(7, 8)), asked)
    assert "another order" in beyond.requested_and_published(parse_rows(wrong.format(8, 7)), asked)[0]
    assert "not asked for" in beyond.requested_and_published(parse_rows(wrong.format(7, 9)), asked)[0]
    assert "twice" in beyond.requested_and_published(parse_rows(wrong.format(7, 7)), asked)[0]


def test_what_a_crashed_process_had_queued_ends_with_it():
    rows = parse_rows("node 0\nstart\npublish t 0:1 =7\ncrash\nnode 0.1\nstart\nquiescent")
    rows = [row._replace(time=float(place)) for place, row in enumerate(rows)]
    assert not beyond.requested_and_published(rows, Asked(requests=[(0.5, 0, "t", (7, 8))], wishes={0: set()}))
    found = beyond.requested_and_published(rows, Asked(requests=[(3.5, 0, "t", (8,))], wishes={0: set()}))
    assert any("never publishes" in reason for reason in found)


def test_wishes_without_a_subscription_and_subscriptions_without_a_wish():
    rows = parse_rows("node 0\nstart\nsubscribe t\nsubscribed t\nsubscribe u\nquiescent")
    assert beyond.wished_and_open(rows, Asked(wishes={0: {"t", "u"}}), ()) == (
        "node 0 wants u and has no confirmed subscription",
    )
    assert "does not want" in beyond.wished_and_open(rows[:3], Asked(wishes={0: set()}), ())[0]
    assert "never became known" in beyond.wished_and_open(rows, Asked(followers={0: 1.0}), ())[0]


def test_traffic_to_somebody_who_left():
    rows = parse_rows("node 0\nreceive t 1:1\nreceive u 1:1")
    asked = Asked(wishes={0: {"u"}}, epilogue_at=0.0)
    assert beyond.traffic_to_leavers(rows, asked) == ("node 0 does not want t and still gets ('t', 1, 0, 1)",)


def test_gaps_that_name_nothing_or_what_never_was():
    rows = [row._replace(time=5.0) for row in parse_rows("node 0\nstart\ngap t 1:1\nstop")]
    assert "which nobody published" in beyond.unnamed_gaps(rows, Asked())[0]
    assert beyond.unnamed_gaps(rows[:1], Asked(unnamed_gaps=[(0, 0, "t", 4.0)]))[0].endswith("that names nothing")
    assert not beyond.unnamed_gaps([rows[2]], Asked(unnamed_gaps=[(0, 0, "t", 5.0)]))


def test_restarts_have_a_reason_and_one_side_of_a_partition_stays():
    stops = parse_rows("node 0\nstart\nstop\nnode 1\nstart\nstop")
    assert len(beyond.needless_restarts(stops, Asked())) == 2
    suspected = [stops[3]._replace(kind="suspect", peer=0), *stops]
    needless = ("node 1 ended its first incarnation although nobody suspected it",)
    assert beyond.needless_restarts(suspected, Asked()) == needless
    assert not beyond.needless_restarts(suspected, Asked(contradicted={(1, 0)}))
    assert beyond.everybody_gave_way(stops, [0, 1]) and not beyond.everybody_gave_way(stops, [0, 1, 2])


def test_a_joining_node_notices_that_another_one_died():
    """Nobody but the nodes themselves tests: the only one whose turn it is to test the dead one is joining."""
    schedule = Schedule(
        "cubecast",
        146,
        16,
        (12, 13, 14),
        {"t": (12, 13, 14)},
        {"detection": "diagnosis", "round_length": "500.0", "patience": "3000.0", "retry": "500.0"},
        "constant:100",
        False,
        (Action(6000.0, "publish", 14, "t"),),
        (Crash(13, 1259.9),),
        (Suspicion(2927.2, 14, 12),),
        detection_delay=None,
        heal_at=3500.0,
    )
    failure = judge(schedule)
    assert failure is None, failure.reasons


def one_that_came_back(faults):
    words = (Action(100.0, "publish", 14, "t"), Action(2700.0, "publish", 10, "t"))
    members = {"t": (10, 14, 26)}
    return Schedule(
        "cubecast", 1, 32, (10, 14, 26), members, {}, "constant:100", True, words, faults, (), heal_at=3500.0
    )


SIDES = Schedule(
    "cubecast",
    30,
    8,
    (1, 2, 5, 6, 7),
    {"t": (1, 2, 5, 6, 7)},
    {"patience": "1500.0"},
    "constant:100",
    False,
    (Action(2641.7, "publish", 1, "t"),),
    (
        *(Crash(node, 211.9) for node in (2, 5, 6)),
        *(Restart(node, 390.0) for node in (2, 5, 6)),
        Partition(1 << 1 | 1 << 7, 1 << 2 | 1 << 5 | 1 << 6, False, 358.2, 3729.5),
    ),
    (),
    heal_at=4229.5,
)
"""2, 5 and 6 came back behind a cut and began alone; 1 and 7 were cut off from them and are the smaller side."""


def test_a_side_that_lives_with_no_newcomer_may_give_way_though_nobody_held_it_faulty():
    outcome = run(SIDES)
    suspected = [event.peer for event in outcome.events if event.kind == "suspect"]
    ended = {(event.node, event.incarnation) for event in outcome.events if event.kind == "stop"}
    assert ended == {(1, 0), (7, 0)} and not {1, 7} & {*suspected}
    assert ended <= outcome.asked.contradicted
    failure = judge(SIDES)
    assert failure is None, failure.reasons


@pytest.mark.interpreted
def test_nobody_gives_way_to_a_newcomer_it_lives_with():
    faults = (Crash(26, 800.0), Restart(26, 1600.0))
    assert judge(one_that_came_back(faults)) is None
    introduced = Lifetime.on_introduction

    def timid(self, sender, packet):
        introduced(self, sender, packet)
        if packet.known and self.node == 10 and not self.incarnation:
            raise Expelled

    with patch.object(Lifetime, "on_introduction", timid):
        failure = judge(one_that_came_back(faults))
    assert failure is not None and failure.kind == "needless restart"
