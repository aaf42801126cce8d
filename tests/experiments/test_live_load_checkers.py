"""What checks the deliveries of benchmarks finds what it is there for, at once or afterwards, few messages or many."""

import time

import pytest

from cubecast.errors import BadInput
from cubecast.experiments.live_load.load import Checker, LateChecker, Load, checker_for

MANY = 20


@pytest.fixture(params=[64, 1024])
def size(request):
    return request.param


@pytest.fixture(params=[Checker, LateChecker])
def checker(request, size):
    return request.param(3, size)


def stamped_by(size, first, count, **heard):
    """Messages of a member that had delivered so many of each."""
    author = Checker(3, size)
    for member, number in heard.items():
        author.delivered[int(member[1:])] = number
    return author.stamp(first, count)


def violations(checker):
    checker.conclude()
    return checker.violations


@pytest.mark.parametrize("count", [1, MANY])
def test_order_is_no_violation(checker, size, count):
    checker.check(0, stamped_by(size, 1, count))
    checker.check(1, stamped_by(size, 1, count, m0=count))
    checker.check(0, stamped_by(size, count + 1, count, m0=count, m1=count))
    assert violations(checker) == 0
    assert checker.delivered == [2 * count, count, 0]


@pytest.mark.parametrize("count", [2, MANY])
def test_a_publishers_messages_in_the_wrong_order_are_found(checker, size, count):
    messages = stamped_by(size, 1, count)
    messages[0], messages[1] = messages[1], messages[0]
    checker.check(0, messages)
    assert violations(checker) > 0


@pytest.mark.parametrize("count", [1, MANY])
def test_an_effect_before_its_cause_is_found(checker, size, count):
    checker.check(1, stamped_by(size, 1, count, m0=1))
    checker.check(0, stamped_by(size, 1, 1))
    assert violations(checker) > 0


@pytest.mark.parametrize("following", [3, 1])
def test_a_message_that_is_missing_or_comes_again_is_found(checker, size, following):
    checker.check(0, stamped_by(size, 1, 1))
    checker.check(0, stamped_by(size, following, 1))
    assert violations(checker) == 1


def test_latencies_count_from_when_they_are_asked_for(size):
    checker = checker_for(Load(members=3, size=size, rate=100.0))
    checker.check(0, stamped_by(size, 1, 1))
    checker.sample()
    began = time.monotonic()
    checker.check(0, stamped_by(size, 2, MANY))
    longest = time.monotonic() - began
    latencies = checker.conclude()
    assert len(latencies) == MANY
    assert all(0 <= latency <= longest for latency in latencies)


def test_a_message_must_have_room_for_its_stamp():
    with pytest.raises(BadInput, match="48 bytes"):
        Checker(8, 47)
