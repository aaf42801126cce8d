"""Pass 4, one task per topic of a run: does everybody see the same order (P9a, P9b, P9c), and do the dependencies that
publishers claim say exactly what happened before (P13)?
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from cubecast.pipeline.causality import CELLS_AT_ONCE
from cubecast.pipeline.findings import Finding
from cubecast.pipeline.messages import RunMessages, TopicMessages
from cubecast.pipeline.rows import Ints, Rows
from cubecast.pipeline.subscriptions import deliveries_by_topic, pack, subscriptions_of, unpack, within
from cubecast.pipeline.view import message_id

COLUMNS = ("publisher", "counter", "seq", "message")


def sequence_rows(rows: Rows, runs: dict[int, RunMessages]) -> list[dict[str, Any]]:
    """Rows of `frames.SEQUENCE`: what each subscription delivered, each message at its first delivery."""
    found = []
    for log in rows.logs:
        if log.run not in runs:
            continue
        deliveries = deliveries_by_topic(rows, log)
        for subscription in subscriptions_of(rows, log)[0]:
            at = within(deliveries.get(subscription.topic, np.zeros(0, np.int64)), subscription)
            at = at[np.sort(_first_of_each(pack(rows.source[at], rows.source_incarnation[at]), rows.counter[at]))]
            found.append(
                {
                    "run": log.run,
                    "topic": rows.topics[subscription.topic],
                    "node": log.node,
                    "incarnation": log.incarnation,
                    "ordinal": subscription.ordinal,
                    "correct": log.correct and not subscription.left and subscription.wants is None,
                    "publisher": pack(rows.source[at], rows.source_incarnation[at]),
                    "counter": rows.counter[at],
                    "seq": rows.seq[at],
                }
            )
    return found


def _first_of_each(key: Ints, counter: Ints) -> Ints:
    order = np.lexsort((counter, key))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(key[order]) != 0) | (np.diff(counter[order]) != 0)
    return order[new]


@dataclass
class Deliveries:
    """One subscription's deliveries; `message` numbers the topic's messages."""

    node: int
    incarnation: int
    topic: str
    ordinal: int
    correct: bool
    publisher: Ints
    counter: Ints
    seq: Ints
    message: Ints

    def finding(self, promise: str, place: int, reason: str, other: tuple[int, int, int]) -> Finding:
        where = (self.node, self.incarnation, int(self.seq[place]), reason, self.topic, self.ordinal)
        return Finding(promise, *where, message=self.at(place), other=other)

    def at(self, place: int) -> tuple[int, int, int]:
        return message_id(int(self.publisher[place]), int(self.counter[place]))


def sequences_of(rows: list[dict[str, Any]]) -> list[Deliveries]:
    """One topic's rows of `frames.SEQUENCE`, in the order of their subscriptions, messages numbered alike."""
    rows.sort(key=lambda row: (row["node"], row["incarnation"], row["ordinal"]))
    publisher = np.concatenate([np.asarray(row["publisher"], np.int64) for row in rows])
    counter = np.concatenate([np.asarray(row["counter"], np.int64) for row in rows])
    _, number = np.unique(np.stack((publisher, counter)), axis=1, return_inverse=True)
    ends = np.cumsum([len(row["seq"]) for row in rows])[:-1]
    parts = zip(*(np.split(column, ends) for column in (publisher, counter, number.reshape(-1))), strict=True)
    names = ("node", "incarnation", "topic", "ordinal", "correct")
    return [
        Deliveries(
            **{name: row[name] for name in names},
            publisher=key,
            counter=count,
            seq=np.asarray(row["seq"], np.int64),
            message=message,
        )
        for row, (key, count, message) in zip(rows, parts, strict=True)
    ]


def disorder(sequences: Sequence[Deliveries]) -> Iterator[Finding]:
    """P9a and P9b. Sequences that fit into one order agree in pairs, so pairs are compared only if they do not."""
    circle = left_in_circles([sequence.message for sequence in sequences])
    if not circle:
        return
    for sequence in sequences:
        inside = [place for place, message in enumerate(sequence.message.tolist()) if message in circle][:2]
        if len(inside) > 1:
            first = sequence.at(inside[0])
            reason = f"{first} before {sequence.at(inside[1])} fits no order that suits everybody"
            yield sequence.finding("P9b", inside[1], reason, first)
            break
    yield from _disagreements(sequences, circle)


def _disagreements(sequences: Sequence[Deliveries], circle: set[int]) -> Iterator[Finding]:
    """P9a: the first disagreement of each subscription with an earlier one.

    Two disagree only about messages on a circle. So only these are compared, and of subscriptions that agree about
    them only the first is compared with.
    """
    inside = np.array(sorted(circle), np.int64)
    different: dict[bytes, Deliveries] = {}
    for sequence in sequences:
        kept = np.isin(sequence.message, inside)
        other = replace(sequence, **{name: getattr(sequence, name)[kept] for name in COLUMNS})
        found = (finding for one in different.values() for finding in _disagreement(one, other))
        yield from islice(found, 1)
        different.setdefault(other.message.tobytes(), other)


def _disagreement(one: Deliveries, other: Deliveries) -> Iterator[Finding]:
    """P9a: the first two messages that the two deliver the other way round."""
    place = np.full(int(max(one.message.max(initial=0), other.message.max(initial=0))) + 1, -1)
    place[one.message] = np.arange(len(one.message))
    shared = np.flatnonzero(place[other.message] >= 0)
    turned = np.flatnonzero(np.diff(place[other.message[shared]]) < 0)
    if len(turned):
        a, b = int(shared[turned[0]]), int(shared[turned[0] + 1])
        reason = f"{other.at(a)} then {other.at(b)} here, the other way round at {one.node}.{one.incarnation}"
        yield other.finding("P9a", b, reason, other.at(a))


def holes(sequences: Sequence[Deliveries]) -> Iterator[Finding]:
    """P9c: what a correct subscription without a filter delivers is the end of what the longest one delivers."""
    correct = [sequence for sequence in sequences if sequence.correct]
    if not correct:
        return
    longest = max(correct, key=lambda sequence: len(sequence.message))
    for sequence in correct:
        size = len(sequence.message)
        differs = np.flatnonzero(sequence.message != longest.message[len(longest.message) - size :])
        if len(differs):
            place = int(differs[-1])
            theirs = longest.at(len(longest.message) - size + place)
            reason = f"{sequence.at(place)} stands where {longest.node}.{longest.incarnation} delivers {theirs}"
            yield sequence.finding("P9c", place, reason, theirs)


def left_in_circles(orders: Sequence[Ints]) -> set[int]:
    """Messages on, or squeezed between, contradictions of these orders, each of which names a message at most once.

    The orders are taken up from the front, a message at a time, as soon as it is next wherever it occurs; what is left
    then is taken up from the back in the same way, and what is left after that is the answer.
    """
    if _follow_the_longest(orders):
        return set()
    stuck = _not_taken_up([order[::-1] for order in _not_taken_up(orders)])
    return {message for order in stuck for message in order.tolist()}


def _follow_the_longest(orders: Sequence[Ints]) -> bool:
    """Whether the longest has all messages, and all others agree with it. The usual case, and quick to see."""
    longest = max(orders, key=len)
    place = np.full(max(int(order.max(initial=-1)) for order in orders) + 1, -1)
    place[longest] = np.arange(len(longest))
    return all((place[order] >= 0).all() and (np.diff(place[order]) > 0).all() for order in orders)


def _not_taken_up(orders: Sequence[Ints]) -> list[Ints]:
    """The rest of each order."""
    occurs = np.bincount(np.concatenate(orders)).tolist()
    messages = [order.tolist() for order in orders]
    place = [0] * len(orders)
    next_in: defaultdict[int, list[int]] = defaultdict(list)
    turn = list(range(len(orders)))
    while turn:
        order = turn.pop()
        if place[order] == len(messages[order]):
            continue
        message = messages[order][place[order]]
        next_in[message].append(order)
        if len(next_in[message]) == occurs[message]:
            for one in next_in.pop(message):
                place[one] += 1
                turn.append(one)
    return [order[taken:] for order, taken in zip(orders, place, strict=True)]


# P13, one task per topic of a run: the dependencies that publishers claim say exactly what happened before.


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
