"""Rows that wait for one another (K0): which of the deliveries that wait are on a circle, and how it runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cubecast.pipeline.messages import TopicMessages
from cubecast.pipeline.subscriptions import pack_one

MOST_STEPS = 8
"""Of a circle, shown in its witness."""
Row = dict[str, Any]


def in_circles(waiting: Sequence[Row], topics: dict[str, TopicMessages]) -> list[Row]:
    """Rows of `frames.FINDING`, the first delivery of each log that waits: those on a circle, with the circle told.

    Each waits for a publication of one log, so that its way leads into a circle; a log that is only on the way is a
    bystander and not to blame.
    """
    stuck = {(row["node"], row["incarnation"]): row for row in waiting}
    found: list[Row] = []
    seen: set[tuple[int, int]] = set()
    for start in sorted(stuck):
        way: list[tuple[int, int]] = []
        log = start
        while log not in seen:
            seen.add(log)
            way.append(log)
            log = (stuck[log]["source"], stuck[log]["source_incarnation"])
        if log in way:
            circle = [stuck[one] for one in way[way.index(log) :]]
            reason = f"happened-before runs in a circle: {_told(circle, topics)}"
            found += [row | {"reason": reason} for row in circle]
    return found


def _told(circle: Sequence[Row], topics: dict[str, TopicMessages]) -> str:
    steps = []
    for one, before in zip(circle, [circle[-1], *circle[:-1]], strict=True):
        needed = (before["source"], before["source_incarnation"], before["counter"])
        seq = _published_at(topics[before["topic"]], *needed)
        message = (one["source"], one["source_incarnation"], one["counter"])
        who = f"{one['node']}.{one['incarnation']}"
        steps.append(f"{who} delivers {message} in row {one['seq']} and publishes {needed} in row {seq}")
    more = f"; and {len(steps) - MOST_STEPS} more" if len(steps) > MOST_STEPS else ""
    return "; ".join(steps[:MOST_STEPS]) + more


def _published_at(topic: TopicMessages, source: int, incarnation: int, counter: int) -> int:
    rank = topic.rank(np.array([pack_one(source, incarnation)]))
    return int(topic.seq[topic.slots(rank, np.array([counter]))[0]])
