"""Who publishes when, and who comes and goes."""

from collections import Counter
from random import Random

import pytest

from cubecast.errors import BadInput
from cubecast.sim.config import SimConfig
from cubecast.sim.recorder import Recorder
from cubecast.sim.run import prepare, simulate, simulate_to_memory
from cubecast.sim.workload import Topics, parse_workload
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind


def published(**options) -> list[Event]:
    events = simulate_to_memory(SimConfig("vcube-ps", propagation="constant:1", **options))[1]
    return [event for event in events if event.kind == Kind.PUBLISH]


def test_uniform_spreads_each_publishers_messages_over_the_window():
    rows = published(nodes=32, publishers="100%", messages=20, window=1000.0, transmission=0.0)
    assert Counter(row.node for row in rows) == dict.fromkeys(range(32), 20)
    times = sorted(row.time for row in rows)
    assert 0 <= times[0] < 50 and 950 < times[-1] < 1200
    assert sum(times) / len(times) == pytest.approx(500, abs=40)


def test_poisson_pauses_have_their_mean():
    rows = published(nodes=16, publishers="100%", messages=50, workload="poisson:40", transmission=0.0)
    last = {row.node: row.time for row in rows}
    assert len(rows) == 16 * 50
    assert sum(last.values()) / 16 == pytest.approx(50 * 40, rel=0.1)


def test_periodic_publishes_once_per_period_by_some_current_subscriber():
    rows = published(nodes=16, subscribers="5", publishers="1", window=1000.0, workload="periodic:100")
    assert [row.time for row in rows] == [100.0 * k for k in range(1, 11)]
    assert 1 < len({row.node for row in rows}) <= 5


def test_respond_answers_once_after_enough_deliveries():
    """§5.6.4: p nodes open, everybody else publishes once, after p deliveries and a random wait."""
    config = SimConfig("vcube-ps", nodes=16, publishers="100%", workload="respond:3:50", propagation="constant:10")
    events = simulate_to_memory(config)[1]
    rows = [event for event in events if event.kind == Kind.PUBLISH]
    assert Counter(row.node for row in rows) == dict.fromkeys(range(16), 1)
    openers = {row.node for row in rows if row.time == 0}
    assert len(openers) == 3
    for row in rows:
        if row.node not in openers:
            before = [e for e in events if e.node == row.node and e.kind == Kind.DELIVER and e.seq < row.seq]
            third = sorted(event.time for event in before)[2]
            assert third <= row.time <= third + 50


def test_zipf_prefers_the_first_topics():
    topics = Topics(8, 1.0, Random(1))
    drawn = Counter(topics.draw() for _ in range(20_000))
    total = sum(1 / k for k in range(1, 9))
    for k in range(8):
        assert drawn[f"t{k}"] / 20_000 == pytest.approx(1 / (k + 1) / total, abs=0.015)
    even = Topics(8, 0.0, Random(1))
    assert max(Counter(even.draw() for _ in range(8000)).values()) < 1150


@pytest.mark.parametrize(
    "text", ["", "uniform:1", "poisson", "poisson:0", "poisson:x", "periodic:-1", "respond:1", "respond:1.5:9", "burst"]
)
def test_impossible_workloads_are_refused(text: str):
    with pytest.raises(BadInput):
        parse_workload(text)


# Churn

CHURN = {"nodes": 32, "subscribers": "10", "publishers": "1", "workload": "periodic:100", "propagation": "constant:5"}


def test_churn_keeps_the_number_of_subscribers():
    config = SimConfig("vcube-ps", window=20_000.0, churn_session=2000.0, seed=3, **CHURN)
    simulation = prepare(config)
    counts: Counter[int] = Counter()

    def look() -> None:
        counts[sum("t" in topics for topics in simulation.world.subscriptions.values())] += 1

    for time in range(0, 20_000, 10):
        simulation.world.at(float(time), look)
    simulation.run()
    assert counts[10] > 0.99 * counts.total(), "a replacement that is still leaving is tried again a moment later"
    assert max(counts) == 10


def test_session_times_have_their_mean():
    events: list[Event] = []
    config = SimConfig("vcube-ps", window=40_000.0, churn_session=2000.0, seed=3, **CHURN)
    prepare(config, Recorder(events, packets=False)).run()
    leaves = [event for event in events if event.kind == Kind.UNSUBSCRIBE]
    joins = [event for event in events if event.kind == Kind.SUBSCRIBE and event.time > 0]
    assert len(leaves) == pytest.approx(10 * 40_000 / 2000, rel=0.2)
    assert len(joins) == len(leaves)


def test_churn_needs_somebody_to_come():
    with pytest.raises(BadInput, match="churn needs nodes"):
        simulate(SimConfig("vcube-ps", nodes=8, subscribers="100%", churn_session=100.0))
