"""The message table of one topic of one run: small enough to be everywhere, so that replay needs no join.

A message's slot is its place when publishers are sorted and each one's counters, which have no holes, are laid end to
end: slot = base[publisher] + counter − 1. Whatever was delivered or stated but never published has no slot.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cubecast.pipeline.causality import HappenedBefore, propagate
from cubecast.pipeline.rows import Flags, Ints
from cubecast.pipeline.subscriptions import pack, pack_one

FOREVER = int(np.iinfo(np.int64).max)
"""A cut that excludes everything."""
_NONE = np.zeros(0, np.int64)


@dataclass
class TopicMessages:
    """Columns over publishers (ascending packed ids), slots, and cause entries grouped by slot."""

    publishers: Ints = field(default_factory=lambda: _NONE)
    count: Ints = field(default_factory=lambda: _NONE)
    base: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    number: Ints = field(default_factory=lambda: _NONE)
    """Per slot: the publication's number in the run, for happened-before."""
    seq: Ints = field(default_factory=lambda: _NONE)
    digest: Ints = field(default_factory=lambda: _NONE)
    """Per slot: what the publisher's row says of the payload; −1 when nothing."""
    attributes: Ints = field(default_factory=lambda: _NONE)
    """Per slot: its attributes' place in `texts`; −1 when it has none."""
    texts: list[str] = field(default_factory=list)
    order: Ints = field(default_factory=lambda: _NONE)
    """The slots, causes first."""
    cause_start: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    cause_publisher: Ints = field(default_factory=lambda: _NONE)
    cause_counter: Ints = field(default_factory=lambda: _NONE)
    owed: Flags = field(default_factory=lambda: np.zeros(0, bool))
    """Per slot: acknowledged, by a publisher that was correct to the end."""
    failed: Flags = field(default_factory=lambda: np.zeros(0, bool))
    lost: frozenset[tuple[int, int]] = frozenset()
    """(packed publisher, counter) of what some gap row declares missing."""
    claim_start: Ints = field(default_factory=lambda: _NONE)
    claim_publisher: Ints = field(default_factory=lambda: _NONE)
    claim_counter: Ints = field(default_factory=lambda: _NONE)

    def __len__(self) -> int:
        return len(self.seq)

    def rank(self, keys: Ints) -> Ints:
        """Places of packed publishers in `publishers`; −1 for those that are not there."""
        if not len(self.publishers):
            return np.full(len(keys), -1)
        place = np.searchsorted(self.publishers, keys)
        place[place == len(self.publishers)] = 0
        return np.where(self.publishers[place] == keys, place, -1)

    def rank_of(self, source: Ints, incarnation: Ints) -> Ints:
        """The same for publishers that are not packed; nearly always a look into a small table will do."""
        table = self._rank_table
        if table is None or incarnation.any() or not len(source) or source.min() < 0 or source.max() >= len(table):
            return self.rank(pack(source, incarnation))
        return table[source]

    @cached_property
    def _rank_table(self) -> Ints | None:
        """Rank by node id, when all publishers are first incarnations with small ids, as they nearly always are."""
        source = self.publishers >> 32
        if not len(source) or (self.publishers & 0xFFFFFFFF).any() or source[0] < 0 or source[-1] > 1_000_000:
            return None
        table = np.full(int(source[-1]) + 1, -1)
        table[source] = np.arange(len(source))
        return table

    def slots(self, rank: Ints, counter: Ints) -> Ints:
        """Slots of messages given by publisher rank and counter; −1 for what was never published."""
        if not len(self):
            return np.full(len(rank), -1)
        known = (rank >= 0) & (counter >= 1) & (counter <= self.count[rank])
        return np.where(known, self.base[rank] + counter - 1, -1)

    @cached_property
    def known_publishers(self) -> frozenset[int]:
        return frozenset(self.publishers.tolist())

    @cached_property
    def publisher_of(self) -> Ints:
        return np.repeat(np.arange(len(self.count)), self.count)

    @cached_property
    def counter_of(self) -> Ints:
        return np.arange(len(self)) - self.base[self.publisher_of] + 1

    @cached_property
    def cause_slot(self) -> Ints:
        return self.slots(self.cause_publisher, self.cause_counter)

    @cached_property
    def cause_owner(self) -> Ints:
        return np.repeat(np.arange(len(self)), np.diff(self.cause_start))

    @cached_property
    def same_publisher_as_next(self) -> Flags:
        same: Flags = self.publisher_of[1:] == self.publisher_of[:-1]
        return same

    @cached_property
    def closure(self) -> Ints:
        """Per slot and publisher, the highest counter among the message's causes and itself."""
        biggest = max(int(self.count.max(initial=0)), int(self.cause_counter.max(initial=0)))
        known = np.zeros((len(self), len(self.publishers)), np.int32 if biggest < 2**31 else np.int64)
        known[np.arange(len(self)), self.publisher_of] = self.counter_of
        published = self.cause_slot >= 0
        unknown = ~published
        where = (self.cause_owner[unknown], self.cause_publisher[unknown])
        np.maximum.at(known, where, self.cause_counter[unknown].astype(known.dtype))
        start = np.concatenate(([0], np.cumsum(published)))[self.cause_start]
        previous = np.where(self.counter_of > 1, np.arange(len(self)) - 1, -1)
        return propagate(known, self.order, previous, start, self.cause_slot[published])

    def __getstate__(self) -> dict[str, Any]:
        """Only the columns travel; what is derived from them is derived where it is needed."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


@dataclass
class RunMessages:
    """What every task knows of a run."""

    topics: dict[str, TopicMessages]
    before: HappenedBefore
    whole: frozenset[int]
    """Packed logs that are there and not short: only of those it is certain what they did not publish."""
    filtered: frozenset[str] = frozenset()
    """Topics that were subscribed with a filter."""
    resumed: bool = False
    """A process lived through a suspicion: what it kept may turn up after others gave it up."""

    def topic(self, name: str) -> TopicMessages:
        known = self.topics.get(name)
        return TopicMessages() if known is None else known

    def implied_cut(self, topic: TopicMessages, rank: int, log_key: int, subscribed_seq: int | None) -> int:
        """The cut of a publisher neither stated nor heard: a subscription is owed what it was confirmed for."""
        low, high = int(topic.base[rank]), int(topic.base[rank + 1])
        if subscribed_seq is None or low == high:
            return FOREVER
        after = self.before.knows(log_key, subscribed_seq, topic.number[low:high])
        return int(np.argmax(after)) if after.any() else FOREVER


# Rows that wait for one another (K0): which of the deliveries that wait are on a circle, and how it runs.

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
