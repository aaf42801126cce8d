"""P3, P3b, P4, P4u, P12: what must have been delivered by the time everything is quiet."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from cubecast.check.facts import Deliveries, Facts
from cubecast.check.history import Publisher, message_of, publisher_of
from cubecast.check.verdict import Violation
from cubecast.ids import MessageId


def validity(facts: Facts) -> Iterator[Violation]:
    """P3: an acknowledged message of a correct publisher is delivered by every correct subscription it is for."""
    for name, topic in facts.topics.items():
        owed = {message for message in topic.acknowledged if facts.logs[publisher_of(message)].correct}
        for view in facts.deliveries[name]:
            if not view.sigma.correct:
                continue
            for message in sorted(owed - view.sigma.deliveries.keys()):
                if message.counter > view.start[view.causality.column[publisher_of(message)]]:
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
                    if later and message not in sigma.deliveries and message not in topic.failed:
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
        tops = [view.last for view in views if uniform or view.sigma.correct]
        if not tops:
            continue
        top = np.max(tops, axis=0)
        for view in views:
            if view.sigma.correct:
                for column in np.flatnonzero((top > view.last) & (top > view.start)).tolist():
                    message = causality.message(column, top[column])
                    yield _never(promise, view, message, "is delivered elsewhere but not reached here")


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
    reported: set[MessageId] = set()
    published = view.causality.topic.count
    for row in view.sigma.receives:
        batch = row.messages or 1
        if batch <= 1 and row[6:9] in settled:
            continue
        first = message_of(row)
        # Beyond its first message a packet holds nothing that was not published, whatever a damaged count says.
        last = max(first.counter, min(first.counter + max(batch, 1) - 1, published.get(publisher_of(first), 0)))
        for counter in range(max(first.counter, 1), last + 1):
            message = first._replace(counter=counter)
            if message not in settled and message not in reported and not view.sigma.excludes(message):
                reported.add(message)
                yield _never("P12", view, message, "was received but is neither delivered nor accounted for")


def _wrong_gaps(view: Deliveries, somewhere: set[MessageId]) -> Iterator[Violation]:
    for row in view.sigma.gaps:
        message = message_of(row)
        if message in view.sigma.deliveries:
            yield view.violation("P12", row, f"{tuple(message)} is declared lost and delivered all the same", message)
        elif view.sigma.correct and message in somewhere:
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
