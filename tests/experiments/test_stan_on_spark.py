"""StaN's rounds as a Spark job: divided among tasks, and still what one process computes of the whole universe."""

import numpy as np
import pytest

from cubecast.errors import BadInput
from cubecast.experiments.stan.overlays import Rounds, divide, run_rounds
from cubecast.experiments.stan.universes import matched
from cubecast.pipeline.workloads.synthetic import Shape, matched_subscriptions
from cubecast.pipeline.workloads.table import number_table
from cubecast.sim.kernels.stan import Overlays

SHAPE = Shape(processes=250, topics=40, largest=120, activity=1.6, most_active=100.0, communities=4, share=0.7)
RULES = Rounds(rounds=3, loss=0.1, seed=5, measured=10, starts=1000, every_round=True)


def renumbered(drawn):
    """As the table has them: processes without a topic are not in it."""
    there = np.unique(drawn.members)
    return np.searchsorted(there, drawn.members).astype(np.int32)


def test_links_and_graphs_are_those_of_the_kernel(spark):
    drawn = matched(7, SHAPE)
    numbered = number_table(matched_subscriptions(spark, SHAPE, 7).repartition(3))
    outcome = run_rounds(numbered, RULES, at_once=3)
    found = outcome.links().toPandas().sort_values(["round", "process"])
    graphs = outcome.topics().toPandas().sort_values(["round", "topic"])
    overlays = Overlays(drawn.first, renumbered(drawn), seed=5)
    for number in range(4):
        if number:
            overlays.round(0.1)
        one = found[found["round"] == number]
        assert one["links"].tolist() == overlays.physical_links().tolist()
        assert one["logical"].tolist() == overlays.logical_links().tolist()
        assert one["topics"].tolist() == overlays.subscriptions().tolist()
        if number in (0, 3):
            overlays.mend()
            chosen = np.unique(np.linspace(0, 39, 10).astype(int))
            seen = graphs[graphs["round"] == number]
            assert seen["topic"].tolist() == chosen.tolist()
            assert seen["members"].tolist() == drawn.sizes[chosen].tolist()
            measured = seen[["clustering", "path", "diameter", "weakly", "strongly"]].to_numpy()
            assert measured == pytest.approx(overlays.measures(chosen))
    outcome.release()
    numbered.release()


def test_users_and_topics_are_numbered_in_the_order_of_their_names(spark):
    table = spark.createDataFrame([("b", "y"), ("a", "y"), ("c", "x"), ("b", "x")], "user string, topic string")
    numbered = number_table(table.repartition(4))
    assert sorted(tuple(row) for row in numbered.users.collect()) == [("a", 0), ("b", 1), ("c", 2)]
    assert sorted(tuple(row) for row in numbered.topics.select("name", "topic", "members").collect()) == [
        ("x", 0, 2),
        ("y", 1, 2),
    ]
    assert sorted(tuple(row) for row in numbered.pairs.collect()) == [(0, 1), (0, 2), (1, 0), (1, 1)]
    numbered.release()


def test_tasks_have_about_equal_work_and_every_topic_once():
    sizes = np.random.default_rng(1).pareto(1.2, 5000).astype(int) + 2
    division = divide(sizes, 1000, at_once=2, most=2000)
    assert division.tasks % 2 == 0 and division.topics[0] == 0 and division.topics[-1] == 5000
    work = np.add.reduceat(sizes, division.topics[:-1])
    assert work.max() < 2000 + sizes.max() and division.slots == [0, *work.cumsum()[:-1].tolist()]
    assert (division.processes[0], division.processes[-1]) == (0, 1000)
    alone = divide(np.array([3]), 3, at_once=4)
    assert (alone.topics, alone.slots) == ([0, 1], [0])


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"loss": 1.0}, {"view": 0}, {"measured": 0}])
def test_impossible_rules_are_refused(wrong):
    with pytest.raises(BadInput):
        Rounds(**wrong)
