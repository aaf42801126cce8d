"""Cuts a log into subscriptions, and says where its control rows contradict each other (K0)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cubecast.pipeline.rows import CODE, Ints, Log, Rows
from cubecast.trace.schema import Kind

SUBSCRIBE, CUT, SUBSCRIBED = CODE[Kind.SUBSCRIBE], CODE[Kind.CUT], CODE[Kind.SUBSCRIBED]
UNSUBSCRIBE, UNSUBSCRIBED, DELIVER = CODE[Kind.UNSUBSCRIBE], CODE[Kind.UNSUBSCRIBED], CODE[Kind.DELIVER]
_CONTROL = np.zeros(len(CODE) + 1, bool)
_CONTROL[[SUBSCRIBE, CUT, SUBSCRIBED, UNSUBSCRIBE, UNSUBSCRIBED]] = True


class Contradiction(NamedTuple):
    """A row that cannot be true beside the rows before it."""

    row: int
    reason: str


@dataclass
class Subscription:
    """Rows start … stop − 1 of the log lie inside it."""

    topic: int
    ordinal: int
    start: int
    stop: int
    subscribed: int | None = None
    unsubscribe: int | None = None
    left: bool = False
    """An `unsubscribe` or `unsubscribed` row is in the log: nothing more is owed to it."""
    wants: str | None = None
    """Its filter."""
    stated: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(source, incarnation) → (last excluded counter, row that says so)."""


def deliveries_by_topic(rows: Rows, log: Log) -> dict[int, Ints]:
    """The deliver rows of a log for each topic, in order."""
    return by_topic(rows, log, DELIVER)


def by_topic(rows: Rows, log: Log, *kinds: int) -> dict[int, Ints]:
    """The rows of these kinds for each topic, in order; −1 stands for those that name none."""
    wanted = np.zeros(len(CODE) + 1, bool)
    wanted[list(kinds)] = True
    at = np.flatnonzero(wanted[rows.kind[log.start : log.stop]]) + log.start
    topics = rows.topic[at]
    if not len(at) or (topics == topics[0]).all():
        return {int(topics[0]): at} if len(at) else {}
    order = np.argsort(topics, kind="stable")
    edges = np.flatnonzero(np.diff(topics[order])) + 1
    return {int(topics[part[0]]): at[part] for part in np.split(order, edges)}


def within(at: Ints, subscription: Subscription) -> Ints:
    """The part of sorted row numbers that lies inside a subscription."""
    low, high = np.searchsorted(at, (subscription.start, subscription.stop))
    return at[low:high]


def subscriptions_of(rows: Rows, log: Log) -> tuple[list[Subscription], list[Contradiction]]:
    control = np.flatnonzero(_CONTROL[rows.kind[log.start : log.stop]]) + log.start
    everything: list[Subscription] = []
    open_now: dict[int, Subscription] = {}
    ordinals: dict[int, int] = {}
    wrong: list[Contradiction] = []
    cuts = _stated_cuts(rows, control)
    for row in control.tolist():
        kind, topic = int(rows.kind[row]), int(rows.topic[row])
        subscription = open_now.get(topic)
        if kind == SUBSCRIBE:
            if subscription is not None:
                wrong.append(Contradiction(row, "subscribes while already subscribed"))
                continue
            ordinals[topic] = ordinals.get(topic, -1) + 1
            wants = rows.filters[rows.filter[row]] if rows.filter[row] >= 0 else None
            open_now[topic] = Subscription(topic, ordinals[topic], row, log.stop, wants=wants)
            everything.append(open_now[topic])
        elif subscription is None:
            wrong.append(Contradiction(row, "speaks of a subscription that is not open"))
        elif kind == UNSUBSCRIBED:
            subscription.stop, subscription.left = row, True
            del open_now[topic]
        else:
            wrong += _apply(subscription, kind, row, cuts.get(row, ()))
    return everything, wrong


def _stated_cuts(rows: Rows, control: Ints) -> dict[int, list[tuple[int, int, int]]]:
    """Source, incarnation and counter of what the rows exclude, all looked up at once: few rows exclude anything."""
    lengths, *parts = rows.list_at("cut", control)
    ends = np.cumsum(lengths)
    found = list(zip(*(part.tolist() for part in parts), strict=True))
    return {
        int(control[place]): found[ends[place] - lengths[place] : ends[place]]
        for place in np.flatnonzero(lengths).tolist()
    }


def _apply(subscription: Subscription, kind: int, row: int, cut: Sequence[tuple[int, int, int]]) -> list[Contradiction]:
    """A cut, subscribed or unsubscribe row inside an open subscription."""
    if kind == UNSUBSCRIBE:
        if subscription.unsubscribe is not None:
            return [Contradiction(row, "unsubscribes twice")]
        subscription.unsubscribe, subscription.left = row, True
        return []
    wrong = []
    if kind == SUBSCRIBED:
        if subscription.subscribed is not None:
            wrong.append(Contradiction(row, "is confirmed twice"))
        else:
            subscription.subscribed = row
    for source, incarnation, counter in cut:
        if (source, incarnation) in subscription.stated:
            wrong.append(Contradiction(row, f"states the cut of {source}.{incarnation} a second time"))
        else:
            subscription.stated[source, incarnation] = (counter, row)
    return wrong


def late_statements(rows: Rows, delivered: Ints, subscription: Subscription) -> list[Contradiction]:
    """Cuts stated after a delivery of the same source."""
    late = {key: row for key, (_, row) in subscription.stated.items() if len(delivered) and row > delivered[0]}
    if not late:
        return []
    keys = pack(rows.source[delivered], rows.source_incarnation[delivered])
    present, first = np.unique(keys, return_index=True)
    wrong = []
    for (source, incarnation), row in late.items():
        key = pack_one(source, incarnation)
        place = int(np.searchsorted(present, key))
        if place < len(present) and present[place] == key and delivered[first[place]] < row:
            wrong.append(Contradiction(row, f"states the cut of {source}.{incarnation} after a delivery from it"))
    return wrong


def pack(source: Ints, incarnation: Ints) -> Ints:
    """(source, incarnation) as one integer, in the same order."""
    return (source.astype(np.int64) << 32) + incarnation.astype(np.int64)


def pack_one(source: int, incarnation: int) -> int:
    return (source << 32) + incarnation


def unpack(key: int) -> tuple[int, int]:
    incarnation = ((key + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
    return (key - incarnation) >> 32, incarnation
