"""Corrections of the paper that random worlds can tell from their absence: without one, a world goes wrong."""

import pytest

from protocol.brokers.planted_removals import PLANTS, planted
from protocol.brokers.test_broker_worlds import faulty_world

FOUND = {
    "C1 duplicates are known by numbers alone": (2004, 2),
    "C2 nothing waits for the past": (2004, 1),
    "C5 nobody is owed anything": (2003, 2),
    "C6 late copies are not passed on": (2001, 1),
    "C8, C9 a partial marker without what was seen": (2015, 1),
}
"""By name: the seed and f of the first world, from 2000 on with f = 1 and f = 2 each, in which it shows."""
LONGEST = 60_000.0


def problems(seed: int, faults: int) -> list[str]:
    world, _ = faulty_world(seed, faults, 3 + seed % 9)
    try:
        world.run(LONGEST)
    except (AssertionError, LookupError) as error:
        return [repr(error)]
    return world.judge()


@pytest.mark.parametrize("name", FOUND)
def test_what_is_taken_out_shows(name: str):
    assert not problems(*FOUND[name])
    with planted(name):
        assert problems(*FOUND[name])


def test_no_plant_is_forgotten():
    assert FOUND.keys() == PLANTS.keys()
