"""P1, P1b, P2, P10, P11: what may be delivered at all, and how often."""

from collections import Counter
from collections.abc import Iterator

from cubecast.check.facts import Facts
from cubecast.check.history import message_of, publisher_of
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
