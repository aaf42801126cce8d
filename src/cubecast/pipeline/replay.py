"""Pass 2, on the executors: every subscription is replayed where its rows lie, against the message table."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from cubecast.pipeline.examine import Examination, altered, created
from cubecast.pipeline.findings import Finding, finding_rows
from cubecast.pipeline.logs import continues
from cubecast.pipeline.messages import RunMessages, TopicMessages
from cubecast.pipeline.rows import CODE, Ints, Log, Rows
from cubecast.pipeline.subscriptions import (
    Subscription,
    deliveries_by_topic,
    pack,
    pack_one,
    subscriptions_of,
    unpack,
    within,
)
from cubecast.pipeline.view import Places, View
from cubecast.trace.schema import Kind

# The quick check of a subscription: proves at array speed that nothing is wrong, or says that it cannot.
#
# Give every message of the topic a place: −1 inside the stated cut, its position when delivered, far away otherwise.
# If nothing is delivered twice, unpublished, failed or from inside the cut, then *no cause lies behind its effect*
# certifies K2, P5, P6, P7 and P8 at once: the cut is closed, so looking at direct causes is as good as looking at all
# of them.

FAR = np.int32(2**31 - 1)


def certify(view: View) -> Ints | None:
    """Places of the topic's messages (and one far place at the end), or None when the exact check must decide."""
    topic = view.topic
    if len(view.gaps) or (len(view.slot) and int(view.slot.min()) < 0):
        return None
    if view.altered.any() or view.wanted is not None:
        return None
    places = np.full(len(topic) + 1, FAR, np.int32)
    order = np.arange(len(view.slot), dtype=np.int32)
    places[view.slot] = order
    if not (places[view.slot] == order).all():
        return None
    if not _exclude(view, places) or not _causes_first(topic, places):
        return None
    if topic.failed.any() and (places[:-1][topic.failed] < FAR).any():
        return None
    if view.correct and (topic.owed & (places[:-1] == FAR)).any():
        return None
    return places


def _exclude(view: View, places: Ints) -> bool:
    """Put what the stated cuts exclude at place −1; False when a cut names too much or hides a delivery."""
    topic = view.topic
    if any(cut < 0 for cut, _ in view.subscription.stated.values()):
        return False
    for key, cut in view.stated.items():
        rank = int(topic.rank(np.array([key]))[0])
        if cut > (int(topic.count[rank]) if rank >= 0 else 0):
            return False
        if cut:
            low = int(topic.base[rank])
            if (places[low : low + cut] < FAR).any():
                return False
            places[low : low + cut] = -1
    return True


def _causes_first(topic: TopicMessages, places: Ints) -> bool:
    chain = places[:-2] > places[1:-1]
    if len(topic) > 1 and (chain & topic.same_publisher_as_next).any():
        return False
    # An unpublished cause has slot −1: the last place, which is far away.
    return not (places[topic.cause_slot] > places[topic.cause_owner]).any()


DISCARD, GAP, PUBLISH = (CODE[kind] for kind in (Kind.DISCARD, Kind.GAP, Kind.PUBLISH))


def replayed_rows(rows: Rows, runs: dict[int, RunMessages], wanted: dict[int, frozenset[str]]) -> list[dict[str, Any]]:
    """Rows of `frames.REPLAYED` for all logs of the runs that are to be replayed."""
    replayed: list[dict[str, Any]] = []
    for (run, _), logs in groupby(rows.logs, key=lambda log: (log.run, log.node)):
        if run in runs:
            incarnations = list(logs)
            for log in incarnations:
                replayed += replay_log(rows, log, runs[run], wanted[run])
            if len(incarnations) > 1:
                replayed.append(_outside(incarnations[0], _delivered_again(rows, incarnations)))
    return replayed


def replay_log(rows: Rows, log: Log, run: RunMessages, wanted: frozenset[str]) -> Iterator[dict[str, Any]]:
    subscriptions, _ = subscriptions_of(rows, log)
    deliveries = deliveries_by_topic(rows, log)
    nothing, places = np.zeros(0, np.int64), Places(rows, log)
    inside = np.zeros(log.stop - log.start, bool)
    for subscription in subscriptions:
        at = within(deliveries.get(subscription.topic, nothing), subscription)
        inside[at - log.start] = True
        topic = run.topic(rows.topics[subscription.topic])
        yield replay(View(rows, log, subscription, run, topic, at, places), deliveries, wanted)
    strays = [(topic, at[~inside[at - log.start]]) for topic, at in deliveries.items()]
    if any(len(at) for _, at in strays):
        yield _outside(log, [finding for topic, at in strays for finding in _strays(rows, log, run, topic, at, places)])


def replay(view: View, deliveries: dict[int, Ints], wanted: frozenset[str]) -> dict[str, Any]:
    """One subscription as a row: its vectors, and what is wrong with it."""
    places = certify(view)
    findings: list[Finding] = []
    if places is None:
        findings += Examination(view).findings()
    if "K3" in wanted:
        findings += _dishonest(view)
    if "P3b" in wanted:
        findings += _own_lost(view)
    lost: list[Finding] = []
    heard: list[tuple[int, int]] = []
    if "P12" in wanted:
        findings += _held(view, places, deliveries.get(view.subscription.topic, view.at))
    if wanted & {"P12", "P4 measured"}:
        lost = list(_lost(view))
        findings += [finding for finding in lost if finding.other is not None]
        heard = _heard_of_lost(view)
    return {
        **_identity(view.log),
        "topic": view.name,
        "ordinal": view.subscription.ordinal,
        "correct": view.correct,
        "subscribed": view.subscribed_seq,
        "last_seq": int(view.rows.seq[view.last_row]),
        "deliveries": len(view.at),
        **(_vectors(view) if places is None else _certified_vectors(view)),
        "findings": finding_rows(findings),
        "lost": [finding.row() for finding in lost if finding.other is None],
        "heard_publisher": [key for key, _ in heard],
        "heard_counter": [counter for _, counter in heard],
        "wants": view.subscription.wants,
        **_delivered(view),
    }


def _delivered(view: View) -> dict[str, Any]:
    """All of it, where another subscription to the topic may want a part of it."""
    if view.name not in view.run.filtered:
        return {}
    return {"delivered_publisher": view.key, "delivered_counter": view.counter}


def _identity(log: Log) -> dict[str, Any]:
    return {"run": log.run, "node": log.node, "incarnation": log.incarnation}


def _outside(log: Log, findings: list[Finding]) -> dict[str, Any]:
    """What is wrong outside any subscription."""
    return {**_identity(log), "findings": finding_rows(findings)}


def _vectors(view: View) -> dict[str, Any]:
    """Per publisher stated or heard: the cut, and the highest counter delivered."""
    stated = np.array(sorted(view.stated), np.int64)
    keys, column = np.unique(np.concatenate((view.key, stated)), return_inverse=True)
    last = np.zeros(len(keys), np.int64)
    np.maximum.at(last, column[: len(view.at)], view.counter)
    return {"publisher": keys, "cut": [view.stated.get(key, 0) for key in keys.tolist()], "last": last}


def _certified_vectors(view: View) -> dict[str, Any]:
    """The same without a sort: all publishers are known, and each one's last delivery is its highest counter."""
    last = np.full(len(view.topic.publishers), -1, np.int64)
    last[view.rank] = view.counter
    stated = {key: cut for key, cut in view.stated.items() if key in view.topic.known_publishers}
    places = view.topic.rank(np.array(list(stated), np.int64))
    last[places] = np.maximum(last[places], 0)
    cut = np.zeros(len(last), np.int64)
    cut[places] = list(stated.values())
    told = last >= 0
    return {"publisher": view.topic.publishers[told], "cut": cut[told], "last": last[told]}


def _dishonest(view: View) -> Iterator[Finding]:
    """K3: a cut that excludes something published after the subscription was confirmed."""
    seq, before = view.subscribed_seq, view.run.before
    if seq is None or before.publishes_after(view.log_key, seq) is None:
        return
    for publisher, (cut, row) in view.subscription.stated.items():
        rank = int(view.topic.rank(np.array([pack_one(*publisher)]))[0])
        last = min(cut, int(view.topic.count[rank])) if rank >= 0 else 0
        if last >= 1:
            number = view.topic.number[[int(view.topic.base[rank]) + last - 1]]
            if before.knows(view.log_key, seq, number)[0]:
                message = (*publisher, last)
                reason = f"the cut excludes {message}, published after the subscription was confirmed"
                yield view.finding("K3", row, reason, message)


def _own_lost(view: View) -> Iterator[Finding]:
    """P3b: published after the subscription was confirmed, and never delivered in it."""
    confirmed = view.subscription.subscribed
    if not view.correct or confirmed is None:
        return
    rows, at = view.rows, view.places.of(view.subscription.topic, PUBLISH)
    at = at[at > confirmed]
    slot = view.topic.slots(view.topic.rank_of(rows.source[at], rows.source_incarnation[at]), rows.counter[at])
    lost = ~view.topic.failed[slot]
    at = at[lost if view.wanted is None else lost & view.wanted[slot]]
    delivered = _messages_at(rows, view.at)
    for row in at.tolist():
        source, incarnation, counter = message = view.message(row)
        if (pack_one(source, incarnation), counter) not in delivered:
            reason = f"{message} was published here and is not delivered here"
            yield view.finding("P3b", view.last_row, reason, message=message)


def _held(view: View, places: Ints | None, delivered: Ints) -> Iterator[Finding]:
    """P12: received, and at the end neither delivered nor discarded nor declared missing nor excluded."""
    if not view.correct:
        return
    key, counter = _received(view)
    if view.wanted is not None:
        here = np.append(view.wanted, False)[view.topic.slots(view.topic.rank(key), counter)]
        key, counter = key[here], counter[here]
    if places is not None:
        # Certified: what has a place, in the cut or delivered, is accounted for.
        slot = view.topic.slots(view.topic.rank(key), counter)
        key, counter = key[places[slot] == FAR], counter[places[slot] == FAR]
    if not len(key):
        return
    settled = _messages_at(view.rows, delivered) | _messages_at(view.rows, _settling(view))
    for publisher, number in sorted(set(zip(key.tolist(), counter.tolist(), strict=True)) - settled):
        if number > view.stated.get(publisher, 0):
            message = (*unpack(publisher), number)
            reason = f"{message} was received but is neither delivered nor accounted for"
            yield view.finding("P12", view.last_row, reason, message=message)


def _received(view: View) -> tuple[Ints, Ints]:
    """Messages inside the packets received while subscribed; where a row lists none, the one that it names."""
    row, key, counter = view.places.received(view.subscription.topic)
    here = slice(*np.searchsorted(row, (view.subscription.start, view.subscription.stop)))
    return key[here], counter[here]


def _settling(view: View) -> Ints:
    """Discard and gap rows on the topic, anywhere in the log."""
    at = view.places.of(view.subscription.topic, DISCARD, GAP)
    return at[view.rows.named[at]]


def _messages_at(rows: Rows, at: Ints) -> set[tuple[int, int]]:
    key = pack(rows.source[at], rows.source_incarnation[at])
    return set(zip(key.tolist(), rows.counter[at].tolist(), strict=True))


def _lost(view: View) -> Iterator[Finding]:
    """P12: gap rows that this subscription contradicts itself, and (without `other`) those others might contradict."""
    if not len(view.gaps):
        return
    own = _messages_at(view.rows, view.at)
    goes_on = continues(view.rows, view.log)
    begun = set(view.key.tolist()) | view.stated.keys()
    for row in view.gaps.tolist():
        source, incarnation, counter = message = view.message(row)
        publisher = pack_one(source, incarnation)
        if (publisher, counter) in own:
            yield view.finding("P12", row, f"{message} is declared lost and delivered all the same", message)
        elif view.correct and (not goes_on or (publisher in begun and counter > view.stated.get(publisher, 0))):
            yield view.finding("P12", row, f"{message} is declared lost but a correct node delivers it")


def _heard_of_lost(view: View) -> list[tuple[int, int]]:
    """What this correct subscription delivered of the messages that a subscription declared lost."""
    if not view.correct or not view.topic.lost:
        return []
    return sorted(view.topic.lost & _messages_at(view.rows, view.at))


def _strays(rows: Rows, log: Log, run: RunMessages, topic: int, at: Ints, places: Places) -> Iterator[Finding]:
    """P11, and P1 and P1b for what is delivered outside any subscription."""
    nowhere = Subscription(topic, -1, log.start, log.start)
    view = View(rows, log, nowhere, run, run.topic(rows.topics[topic]), at, places)
    for row, slot, wrong in zip(at.tolist(), view.slot.tolist(), view.altered.tolist(), strict=True):
        message = view.message(row)
        reason = f"{message} is delivered outside any subscription to {view.name}"
        yield view.finding("P11", row, reason)._replace(ordinal=None)
        if slot < 0 or view.topic.failed[slot]:
            yield created(view, row, slot)._replace(ordinal=None)
        if wrong:
            yield altered(view, row)._replace(ordinal=None)


def _delivered_again(rows: Rows, incarnations: list[Log]) -> list[Finding]:
    """P10 beyond P1 to P4: what an earlier incarnation of the node delivered already."""
    first: dict[tuple[int, int, int], tuple[int, int]] = {}
    findings = []
    for log in incarnations:
        for topic, at in deliveries_by_topic(rows, log).items():
            key = pack(rows.source[at], rows.source_incarnation[at]).tolist()
            for row, publisher, counter in zip(at.tolist(), key, rows.counter[at].tolist(), strict=True):
                place = (log.incarnation, int(rows.seq[row]))
                earlier, seq = first.setdefault((topic, publisher, counter), place)
                if earlier != log.incarnation:
                    message = (*unpack(publisher), counter)
                    reason = f"{message} was delivered by incarnation {earlier} of this node already"
                    where = (log.node, log.incarnation, int(rows.seq[row]), reason, rows.topics[topic])
                    findings.append(Finding("P10", *where, message=message, other_seq=seq))
    return findings
