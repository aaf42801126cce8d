"""Universes of a given size on Spark are those that experiments draw."""

import numpy as np
import pytest

from cubecast.errors import BadInput
from cubecast.experiments.stan.universes import matched
from cubecast.pipeline.workloads.synthetic import Population, Shape, matched_subscriptions

SMALL = Shape(processes=200, topics=25, largest=150, activity=1.6, most_active=100.0, communities=4, share=0.7)


def test_spark_and_experiments_draw_the_same(spark):
    found = matched_subscriptions(spark, SMALL, seed=3)
    drawn = matched(3, SMALL)
    expected = {(f"u{user:03}", f"t{topic:02}") for topic in range(25) for user in drawn.of(topic).tolist()}
    rows = [tuple(row) for row in found.collect()]
    assert len(rows) == len(expected) == drawn.first[-1]
    assert set(rows) == expected
    assert {tuple(row) for row in matched_subscriptions(spark, SMALL, seed=4).collect()} != expected


def test_subscribers_are_drawn_by_activity_and_from_their_community():
    users = Population(np.array([1.0, 4.0, 5.0, 10.0]), np.array([0.0, 4.0, 10.0]), share=0.5)
    drawn = np.bincount(users.draw(np.random.default_rng(1), np.zeros(40_000, np.int64))) / 40_000
    expected = [0.5 * (1 / 4 + 1 / 10), 0.5 * (3 / 4 + 3 / 10), 0.5 / 10, 0.5 * 5 / 10]
    assert drawn == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"processes": 29}, "as many users"),
        ({"topics": 0}, "at least 1 topic"),
        ({"largest": 29}, "30 subscribers or more"),
        ({"communities": 0}, "1 to 200 communities"),
        ({"communities": 201}, "1 to 200 communities"),
        ({"share": 1.0}, "less than 1"),
    ],
)
def test_impossible_shapes_are_refused(wrong, complaint):
    with pytest.raises(BadInput, match=complaint):
        Shape(**(vars(SMALL) | wrong))
