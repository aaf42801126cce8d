"""P13, one task per topic of a run: the dependencies that publishers claim say exactly what happened before."""

from collections.abc import Iterator

import numpy as np

from cubecast.pipeline.causality import CELLS_AT_ONCE
from cubecast.pipeline.findings import Finding
from cubecast.pipeline.messages import TopicMessages
from cubecast.pipeline.rows import Ints
from cubecast.pipeline.subscriptions import unpack
from cubecast.pipeline.view import message_id


def unsound_headers(name: str, topic: TopicMessages) -> Iterator[Finding]:
    """Never certain in an incomplete trace: missing rows could add causes."""
    block = max(1, CELLS_AT_ONCE // 10 // max(1, len(topic.publishers)))
    for low in range(0, len(topic), block):
        yield from _unsound(name, topic, low, min(low + block, len(topic)))


def _unsound(name: str, topic: TopicMessages, low: int, high: int) -> Iterator[Finding]:
    slots = np.arange(low, high)
    real = topic.closure[low:high].astype(np.int64)
    real[slots - low, topic.publisher_of[slots]] = topic.counter_of[slots] - 1
    claimed, strangers = _claimed(topic, low, high)
    for slot, key, counter in strangers:
        yield _finding(name, topic, slot, key, counter, "is claimed by the header but did not happen before")
    for wrong, frontier, what in (
        (claimed < real, real, "is missing from the header, which is unsafe"),
        (claimed > real, claimed, "is claimed by the header but did not happen before"),
    ):
        for place in np.flatnonzero(wrong.any(axis=1)).tolist():
            column = int(np.argmax(wrong[place]))
            key, counter = int(topic.publishers[column]), int(frontier[place, column])
            yield _finding(name, topic, low + place, key, counter, what)


def _claimed(topic: TopicMessages, low: int, high: int) -> tuple[Ints, list[tuple[int, int, int]]]:
    """What each header and the publisher's previous message stand for, and claims of publishers nobody knows."""
    claimed = np.zeros((high - low, len(topic.publishers)), np.int64)
    later = np.flatnonzero(topic.counter_of[low:high] > 1)
    claimed[later] = topic.closure[low + later - 1]
    first, last = int(topic.claim_start[low]), int(topic.claim_start[high])
    owner = np.repeat(np.arange(high - low), np.diff(topic.claim_start[low : high + 1]))
    key, counter = topic.claim_publisher[first:last], topic.claim_counter[first:last]
    rank = topic.rank(key)
    slot = topic.slots(rank, counter)
    published = slot >= 0
    starts = np.flatnonzero(np.diff(owner[published], prepend=-1))
    if len(starts):
        known = np.maximum.reduceat(topic.closure[slot[published]], starts, axis=0)
        owners = owner[published][starts]
        claimed[owners] = np.maximum(claimed[owners], known)
    named = ~published & (rank >= 0)
    np.maximum.at(claimed, (owner[named], rank[named]), counter[named])
    unknown = (rank < 0) & (counter > 0)
    strangers = zip((low + owner[unknown]).tolist(), key[unknown].tolist(), counter[unknown].tolist(), strict=True)
    return claimed, list(strangers)


def _finding(name: str, topic: TopicMessages, slot: int, key: int, counter: int, what: str) -> Finding:
    publisher = int(topic.publishers[topic.publisher_of[slot]])
    message, other = message_id(publisher, int(topic.counter_of[slot])), message_id(key, counter)
    reason = f"dependency {other} of {message} {what}"
    where = (*unpack(publisher), int(topic.seq[slot]), reason, name)
    return Finding("P13", *where, message=message, other=other, certain=False)
