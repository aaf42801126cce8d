"""Corrections of the paper that worlds can tell from their absence: without one, a world goes wrong."""

from collections.abc import Callable

import pytest

from protocol.brokers import directed_worlds as directed
from protocol.brokers.broker_world import BrokerWorld
from protocol.brokers.planted_removals import PLANTS, planted
from protocol.brokers.test_broker_worlds import faulty_world

RANDOM = {
    "C1 duplicates are known by numbers alone": (2024, 2),
    "C2 nothing waits for the past": (2004, 1),
    "C5 nobody is owed anything": (2003, 2),
    "C8, C9 a partial marker without what was seen": (2015, 1),
}
"""By name: the seed and f of the first world, from 2000 on with f = 1 and f = 2 each, in which it shows."""
BY_HAND: dict[str, Callable[[], BrokerWorld]] = {
    "C3 late numbers order": directed.a_late_number_behind_an_early_one,
    "C6 late copies are not passed on": directed.a_bypassed_broker_that_catches_up,
    "C7 nothing is sent again at a suspicion": directed.sent_between_crash_and_suspicion,
    "C7 nothing is asked for": directed.only_one_branch_has_it,
    "C7 what comes later is not for those who asked": directed.the_branch_that_has_it_gets_it_late,
    "C10 undecided events hold nothing": directed.effect_before_an_undecided_cause,
    "C12 new publishers publish at once": directed.an_effect_by_a_new_publisher,
    "C15 publishers are settled one by one": directed.two_publishers_behind_a_pivot,
    "a publisher that ended may begin again": directed.an_end_that_overtakes,
    "nobody is told that a broker is gone": directed.a_publishers_broker_that_dies_far_away,
}
"""By name: a world made for it."""
LONGEST = 60_000.0


def world_for(name: str) -> BrokerWorld:
    if name in BY_HAND:
        return BY_HAND[name]()
    seed, faults = RANDOM[name]
    return faulty_world(seed, faults, 3 + seed % 9)[0]


def problems(world: BrokerWorld) -> list[str]:
    try:
        world.run(LONGEST)
    except (AssertionError, LookupError) as error:
        return [repr(error)]
    return world.judge()


@pytest.mark.parametrize("name", PLANTS)
def test_what_is_taken_out_shows(name: str):
    assert not problems(world_for(name))
    with planted(name):
        assert problems(world_for(name))
