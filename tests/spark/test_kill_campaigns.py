"""Drivers, workers, nodes killed again and again under streams: rows = distinct = published, each publisher in order.

`KILLS=100` for the campaigns as they were meant; a handful by default. The seed is in the name of the test.
"""

import os
from collections import Counter

import pytest

from support.spark_campaign import READ_KINDS, campaign, sink_campaign

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.interpreted]

KILLS = int(os.environ.get("KILLS", "6"))


@pytest.mark.parametrize("kind", READ_KINDS)
@pytest.mark.parametrize("seed", [1])
def test_what_is_published_is_read_once(tmp_path, kind, seed):
    with campaign(tmp_path, kind, KILLS, seed) as found:
        assert len(found.acknowledged) > 100
        assert found.complaints() == []


def test_a_driver_that_commits_before_it_has_read_is_found_out(tmp_path):
    """The mutant that calls the last offset durable is in test_kills.py."""
    with campaign(tmp_path, "driver", max(KILLS, 6), 1, lies=True) as found:
        assert found.complaints()


@pytest.mark.parametrize("seed", [1])
def test_what_is_written_is_published_once(tmp_path, seed):
    logged, committed = sink_campaign(tmp_path, KILLS, seed)
    counted = Counter(logged)
    assert [number for number, many in counted.items() if many > 1] == []
    assert set(range(committed)) <= counted.keys()


def test_a_sink_that_forgets_who_it_was_is_found_out(tmp_path):
    logged, _ = sink_campaign(tmp_path, max(KILLS, 6), 1, lies=True)
    assert max(Counter(logged).values()) > 1
