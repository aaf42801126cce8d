"""Leaves out causes that other causes imply, so that replay looks at few of them per delivery.

If m was published after delivering both a and x, and x was published after delivering a, then "x before m" and "a
before x" say "a before m". The message delivered last before m implies most others, so candidates for x are tried from
the last backwards. Only sound where happened-before has no circle, which is known by then.
"""

import numpy as np

from cubecast.pipeline.causality import groups
from cubecast.pipeline.messages import TopicMessages
from cubecast.pipeline.rows import Flags, Ints

CHECKS_WORTH_SAVING = 20_000_000
MOST_TRIES = 8


def prune(topic: TopicMessages, deliveries: int) -> TopicMessages:
    """Fewer cause entries with the same closure, when there are enough deliveries to make up for the search."""
    entries, size = len(topic.cause_counter), max(1, len(topic))
    if entries <= size or deliveries / size * entries < CHECKS_WORTH_SAVING:
        return topic
    kept = _kept(topic)
    topic.cause_start = groups(topic.cause_owner[kept], len(topic))
    topic.cause_publisher, topic.cause_counter = topic.cause_publisher[kept], topic.cause_counter[kept]
    for derived in ("cause_owner", "cause_slot"):
        topic.__dict__.pop(derived, None)
    return topic


def _kept(topic: TopicMessages) -> Flags:
    known = _Known(topic)
    kept = np.ones(len(topic.cause_counter), bool)
    pivot = topic.cause_start[1:].copy()
    for _ in range(MOST_TRIES):
        pivot = _previous_kept(kept, pivot, topic.cause_start[:-1])
        tried = np.repeat(pivot, np.diff(topic.cause_start))
        candidates = np.flatnonzero(kept & (tried >= 0) & (tried != np.arange(len(kept))))
        implied = known(topic.cause_slot[tried[candidates]], topic.cause_publisher[candidates])
        gone = candidates[implied >= topic.cause_counter[candidates]]
        kept[gone] = False
        if len(gone) < len(kept) // 100:
            break
    return kept


def _previous_kept(kept: Flags, before: Ints, start: Ints) -> Ints:
    """For each message, its last kept entry before the given one; −1 when there is none."""
    last = np.maximum.accumulate(np.where(kept, np.arange(len(kept)), -1))
    found = np.where(before > 0, last[before - 1], -1)
    return np.where((before > start) & (found >= start), found, -1)


class _Known:
    """Up to which counter of q the publisher of a message had delivered (or published) before it."""

    def __init__(self, topic: TopicMessages) -> None:
        self.topic = topic
        self.width = len(topic.publishers)
        publisher = topic.publisher_of[topic.cause_owner]
        key = (publisher * self.width + topic.cause_publisher) * (len(topic) + 1) + topic.cause_owner
        order = np.argsort(key, kind="stable")
        self.key, self.counter = key[order], topic.cause_counter[order]
        # Later entries may name lower counters where order is violated: keep the highest so far within a pair.
        pair = self.key // (len(topic) + 1)
        lift = pair * (int(self.counter.max(initial=0)) + 1)
        self.counter = np.maximum.accumulate(self.counter + lift) - lift
        self.pair = pair

    def __call__(self, slot: Ints, publisher: Ints) -> Ints:
        """−1 where nothing is known, and for messages that were never published."""
        wanted = self.topic.publisher_of[slot] * self.width + publisher
        place = np.searchsorted(self.key, wanted * (len(self.topic) + 1) + slot, side="right") - 1
        found = (place >= 0) & (self.pair[place] == wanted) & (slot >= 0)
        return np.where(found, self.counter[place], -1)
