"""What may be delivered at all, how often (P1, P1b, P2, P10, P11), and what must have been delivered by the time
everything is quiet (P3, P3b, P4, P4u, P12).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from cubecast.check.causality import Vector
from cubecast.check.facts import Deliveries, Facts
from cubecast.check.history import Publisher, message_of, publisher_of
from cubecast.check.verdict import Violation
from cubecast.ids import Incarnation, MessageId, NodeId
from cubecast.trace.event import Event


def no_creation(facts: Facts) -> Iterator[Violation]:
    """P1: every delivery has its publication, and none that was reported failed."""
    for topic in facts.topics.values():
        published, failed = topic.published, topic.failed
        for message, row in topic.deliveries:
            if message not in published:
                certain = facts.is_whole(publisher_of(message))
                yield _of_row("P1", row, f"{tuple(message)} was never published on {row.topic}", certain=certain)
            elif message in failed:
                reason = f"{tuple(message)} was delivered although its publisher was told that it failed"
                yield _of_row("P1", row, reason, other_seq=failed[message].seq)


def right_bytes(facts: Facts) -> Iterator[Violation]:
    """P1b: what is delivered has the bytes that were published, where both rows tell a digest."""
    for topic in facts.topics.values():
        for message, row in topic.deliveries:
            published = topic.published.get(message)
            here, there = (_digest(row), None if published is None else _digest(published))
            if here is not None and there is not None and here != there:
                yield _of_row("P1b", row, f"{tuple(message)} is delivered with other bytes than were published")


def no_duplication(facts: Facts) -> Iterator[Violation]:
    """P2: no message twice in a subscription, none from inside its cut."""
    for view in facts.all_deliveries():
        sigma = view.sigma
        for row in sigma.repeats:
            message = message_of(row)
            yield view.violation("P2", row, f"{tuple(message)} is delivered a second time", message)
        for message, row in sigma.deliveries.items():
            if sigma.excludes(message):
                yield view.violation("P2", row, f"{tuple(message)} is delivered although the cut excludes it")


def within_subscription(facts: Facts) -> Iterator[Violation]:
    """P11: nothing before `subscribe`, nothing after `unsubscribed`, and only what the filter matches."""
    for view in facts.all_deliveries():
        if view.sigma.wants is not None:
            published = view.causality.topic.published
            for message, row in view.sigma.deliveries.items():
                if message in published and not view.sigma.is_for(message, view.causality.topic):
                    yield view.violation("P11", row, f"{tuple(message)} is delivered and the filter does not match it")
    for topic in facts.topics.values():
        for row in topic.strays:
            yield _of_row("P11", row, f"{tuple(message_of(row))} is delivered outside any subscription to {row.topic}")


def once_per_identity(facts: Facts) -> Iterator[Violation]:
    """The part of P10 beyond P1–P4: a restarted node does not deliver what an earlier incarnation delivered."""
    returned = {node for node, count in Counter(node for node, _ in facts.logs).items() if count > 1}
    for topic in facts.topics.values():
        first: dict[tuple[NodeId, MessageId], tuple[Incarnation, int]] = {}
        of_returned = [
            (row.incarnation, row.seq, message, row) for message, row in topic.deliveries if row.node in returned
        ]
        for _, _, message, row in sorted(of_returned):
            incarnation, seq = first.setdefault((row.node, message), (row.incarnation, row.seq))
            if incarnation != row.incarnation:
                reason = f"{tuple(message)} was delivered by incarnation {incarnation} of this node already"
                yield _of_row("P10", row, reason, other_seq=seq)


def _digest(row: Event) -> int | None:
    """No payload has a negative one: that tells nothing."""
    return row.digest if row.digest is not None and row.digest >= 0 else None


def _of_row(promise: str, row: Event, reason: str, other_seq: int | None = None, certain: bool = True) -> Violation:
    return Violation(
        promise,
        row.node,
        row.incarnation,
        row.seq,
        reason,
        topic=row.topic,
        message=message_of(row),
        other_seq=other_seq,
        certain=certain,
    )


# P3, P3b, P4, P4u, P12.


def validity(facts: Facts) -> Iterator[Violation]:
    """P3: an acknowledged message of a correct publisher is delivered by every correct subscription it is for."""
    for name, topic in facts.topics.items():
        owed = {message for message in topic.acknowledged if facts.logs[publisher_of(message)].correct}
        for view in facts.deliveries[name]:
            if not view.sigma.correct:
                continue
            for message in sorted(owed - view.sigma.deliveries.keys()):
                outside = message.counter > view.start[view.causality.column[publisher_of(message)]]
                if outside and view.sigma.is_for(message, topic):
                    yield _never("P3", view, message, "was acknowledged but is not delivered here")


def own_messages(facts: Facts) -> Iterator[Violation]:
    """P3b: what a node publishes to a topic while its subscription is confirmed, it delivers there itself."""
    for name, topic in facts.topics.items():
        own: defaultdict[Publisher, list[MessageId]] = defaultdict(list)
        for message in topic.published:
            own[publisher_of(message)].append(message)
        for view in facts.deliveries[name]:
            sigma = view.sigma
            if sigma.correct and sigma.confirmed is not None:
                for message in own[sigma.log.node, sigma.log.incarnation]:
                    later = topic.published[message].seq > sigma.confirmed.seq
                    lost = later and message not in sigma.deliveries and message not in topic.failed
                    if lost and sigma.is_for(message, topic):
                        yield _never("P3b", view, message, "was published here and is not delivered here")


def agreement(facts: Facts) -> Iterator[Violation]:
    """P4: what one correct subscription reached of a publisher, every correct one reaches."""
    return _agreement(facts, "P4", uniform=False)


def uniform_agreement(facts: Facts) -> Iterator[Violation]:
    """P4u: what any subscription reached, crashed ones included, every correct one reaches."""
    return _agreement(facts, "P4u", uniform=True)


def _agreement(facts: Facts, promise: str, uniform: bool) -> Iterator[Violation]:
    for name, views in facts.deliveries.items():
        causality = facts.causality[name]
        speaking = [view for view in views if uniform or view.sigma.correct]
        if not speaking:
            continue
        highest = np.max([view.last for view in speaking], axis=0)
        for view in views:
            if view.sigma.correct:
                top = highest if view.sigma.wants is None else _highest_wanted(view, speaking)
                for column in np.flatnonzero((top > view.last) & (top > view.start)).tolist():
                    message = causality.message(column, top[column])
                    yield _never(promise, view, message, "is delivered elsewhere but not reached here")


def _highest_wanted(view: Deliveries, speaking: list[Deliveries]) -> Vector:
    """Per publisher, the highest counter that one of these delivered and this subscription's filter matches."""
    top = np.zeros(len(view.start), np.int64)
    for message in {message for other in speaking for message in other.messages}:
        if view.sigma.is_for(message, view.causality.topic):
            column = view.causality.column[publisher_of(message)]
            top[column] = max(top[column], message.counter)
    return top


def no_permanent_hold(facts: Facts) -> Iterator[Violation]:
    """P12: what arrived is delivered or accounted for, and what is declared lost is delivered by nobody correct."""
    for name, topic in facts.topics.items():
        views = facts.deliveries[name]
        settled: defaultdict[Publisher, set[MessageId]] = defaultdict(set, topic.settled)
        for message, row in topic.deliveries:
            settled[row.node, row.incarnation].add(message)
        somewhere = {message for view in views if view.sigma.correct for message in view.messages}
        for view in views:
            if view.sigma.correct:
                yield from _held(view, settled[view.sigma.log.node, view.sigma.log.incarnation])
            yield from _wrong_gaps(view, somewhere)


def _held(view: Deliveries, settled: set[MessageId]) -> Iterator[Violation]:
    sigma, topic = view.sigma, view.causality.topic
    for message in sigma.received:
        if message not in settled and not sigma.excludes(message) and sigma.is_for(message, topic):
            yield _never("P12", view, message, "was received but is neither delivered nor accounted for")


def _wrong_gaps(view: Deliveries, somewhere: set[MessageId]) -> Iterator[Violation]:
    for row in view.sigma.gaps:
        message = message_of(row)
        if message in view.sigma.deliveries:
            yield view.violation("P12", row, f"{tuple(message)} is declared lost and delivered all the same", message)
        elif view.sigma.correct and message in somewhere and view.sigma.answers_for(message):
            yield view.violation("P12", row, f"{tuple(message)} is declared lost but a correct node delivers it")


def _never(promise: str, view: Deliveries, message: MessageId, what: str) -> Violation:
    log = view.sigma.log
    return Violation(
        promise,
        log.node,
        log.incarnation,
        log.last_seq,
        f"{tuple(message)} {what}",
        topic=view.sigma.topic,
        ordinal=view.sigma.ordinal,
        message=message,
    )
