"""A subscriber that never reads costs its node a bounded amount, holds back who publishes to it, and nobody else."""

import asyncio

from bench.never_reads import NEVER_READS, PEER_BUDGET, PUBLISHERS, TOPIC_BUDGET, measure

MARGIN = 4 << 20
"""What an allocator may keep for itself."""
UNSTABLE = 2 * 8 * 65_536 * len(PUBLISHERS)
"""Every node keeps the windows of all publishers until they are stable, as bytes and as messages."""


def test_memory_stays_within_budgets_and_the_others_go_on(tmp_path):
    found = asyncio.run(measure(tmp_path, seconds=2.0, flood_rate=500.0))
    assert found.growth[NEVER_READS] < PEER_BUDGET + UNSTABLE + MARGIN
    assert max(found.growth[node] for node in PUBLISHERS) < TOPIC_BUDGET + UNSTABLE + MARGIN
    assert found.held > 100, "publishers are held back"
    assert found.during, "the talk goes on"
    assert found.caught_up
