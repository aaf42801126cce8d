"""A subscriber that never reads costs its node a bounded amount, holds back who publishes to it, and nobody else."""

import asyncio
from itertools import count

from bench.never_reads import NEVER_READS, PEER_BUDGET, PUBLISHERS, TOPIC_BUDGET, measure

from support.promptness import best_of

MARGIN = 4 << 20
"""What an allocator may keep for itself."""
UNSTABLE = 2 * 8 * 65_536 * len(PUBLISHERS)
"""Every node keeps the windows of all publishers until they are stable, as bytes and as messages."""


def _slowed_down(directory) -> float:
    """How many times as much was said before as beside the one that never reads."""
    found = asyncio.run(measure(directory, seconds=2.0, flood_rate=500.0))
    assert found.growth[NEVER_READS] < PEER_BUDGET + UNSTABLE + MARGIN
    assert max(found.growth[node] for node in PUBLISHERS) < TOPIC_BUDGET + UNSTABLE + MARGIN
    assert found.held > 100, "publishers are held back"
    assert found.caught_up
    return len(found.before) / max(1, len(found.during))


def test_memory_stays_within_budgets_and_the_others_go_on(tmp_path):
    trials = (_slowed_down(tmp_path / str(number)) for number in count())
    assert best_of(trials, 3.0) < 3.0, "the talk goes on"
