"""Contradictions between orders: the verifier's way of finding them against the reference checker's."""

from random import Random

import numpy as np
import pytest

from cubecast.check.facts import left_in_circles
from cubecast.pipeline import order


def circles(*orders: list[int]) -> set[int]:
    return order.left_in_circles([np.array(order, np.int64) for order in orders])


def test_orders_that_fit_together_leave_nothing():
    assert circles([0, 1, 2, 3], [1, 3], [2, 3], []) == set()
    assert circles([0, 2], [1, 2], [0, 1]) == set(), "although none has all messages"


def test_what_lies_on_or_between_circles_is_left_and_nothing_before_or_behind():
    assert circles([0, 1, 2, 3], [0, 2, 1, 3]) == {1, 2}
    assert circles([0, 1], [1, 2], [2, 0]) == {0, 1, 2}, "although no two orders disagree"
    assert circles([0, 1, 2, 3, 4], [1, 0], [4, 3]) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("seed", range(10))
def test_both_judges_find_the_same_in_random_orders(seed: int):
    rng, found = Random(seed), 0
    for _ in range(100):
        orders = [rng.sample(range(8), rng.randint(0, 8)) for _ in range(rng.randint(1, 5))]
        orders = [sorted(order) if rng.random() < 0.7 else order for order in orders]
        assert circles(*orders) == left_in_circles(orders), orders
        found += bool(circles(*orders))
    assert 0 < found < 100
