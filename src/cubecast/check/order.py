"""P5 to P9c and P13: FIFO, causal and total order, with and without holes, and the dependencies that are claimed."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np

from cubecast.check.causality import TopicCausality
from cubecast.check.facts import Deliveries, Facts
from cubecast.check.history import Publisher, publisher_of
from cubecast.check.verdict import Violation
from cubecast.ids import MessageId
from cubecast.trace.event import Event


def fifo(facts: Facts) -> Iterator[Violation]:
    """P5: one publisher's messages are delivered in the order of their counters."""
    for view in facts.all_deliveries():
        highest: dict[Publisher, MessageId] = {}
        for message, row in view.sigma.deliveries.items():
            publisher = publisher_of(message)
            before = highest.get(publisher)
            if before is None or before.counter < message.counter:
                highest[publisher] = message
            else:
                yield view.violation("P5", row, f"{tuple(message)} is delivered after {tuple(before)}", before)


def gapless_fifo(facts: Facts) -> Iterator[Violation]:
    """P6: from the cut on, one publisher's messages are delivered without a hole."""
    for view in facts.all_deliveries():
        if not view.messages:
            continue
        places = np.arange(len(view.messages))
        reach = view.reach[places, view.columns]
        for place in np.flatnonzero((reach < view.counters - 1) & (view.counters > view.start[view.columns])).tolist():
            message = view.messages[place]
            missing = message._replace(counter=int(reach[place]) + 1)
            reason = f"{tuple(message)} is delivered, but {tuple(missing)} was not delivered before it"
            yield view.violation("P6", _row(view, place), reason, missing)


def causal(facts: Facts) -> Iterator[Violation]:
    """P7: of two delivered messages, the cause comes first."""
    for view in facts.all_deliveries():
        if not view.messages:
            continue
        late = view.later <= view.causes
        for place in np.flatnonzero(late.any(axis=1)).tolist():
            column = int(np.argmax(late[place]))
            cause = view.causality.message(column, view.later[place, column])
            reason = f"{tuple(view.messages[place])} is delivered before {tuple(cause)}, which it depends on"
            yield view.violation("P7", _row(view, place), reason, cause)


def gapless_causal(facts: Facts) -> Iterator[Violation]:
    """P8 but for K2: every cause of a delivered message is in the cut, delivered before it or excused before it."""
    for view in facts.all_deliveries():
        if not view.messages:
            continue
        absent = view.causes > view.reach[:-1]
        for place in np.flatnonzero(absent.any(axis=1)).tolist():
            yield _missing_cause(view, place, np.flatnonzero(absent[place]).tolist())


def _missing_cause(view: Deliveries, place: int, columns: list[int]) -> Violation:
    column = min(columns, key=view.is_implied)
    missing = view.causality.message(column, view.reach[place, column] + 1)
    reason = f"{tuple(view.messages[place])} is delivered without {tuple(missing)}, which it depends on"
    certain = view.sigma.log.whole or not view.is_implied(column)
    return view.violation("P8", _row(view, place), reason, missing, certain)


def _row(view: Deliveries, place: int) -> Event:
    return view.sigma.deliveries[view.messages[place]]


# P9a, P9b, P9c: everybody sees the same order, the orders fit together, and nobody has a hole.


def same_order(facts: Facts) -> Iterator[Violation]:
    """P9a: two subscriptions deliver what they share in the same order; each is told its first disagreement.

    Two that disagree do so about messages on a circle. So only the order of those is compared, and of subscriptions
    that agree about them only the first is compared with.
    """
    for name, views in facts.deliveries.items():
        circle = facts.circles[name]
        different: dict[tuple[MessageId, ...], tuple[Deliveries, dict[MessageId, int]]] = {}
        for other in views if circle else ():
            messages = tuple(message for message in other.messages if message in circle)
            for one, place_in_one in different.values():
                turned = _turned(messages, place_in_one)
                if turned is not None:
                    (a, b), log = turned, one.sigma.log
                    reason = f"{tuple(a)} then {tuple(b)} here, the other way round at {log.node}.{log.incarnation}"
                    yield other.violation("P9a", other.sigma.deliveries[b], reason, a)
                    break
            if messages not in different:
                different[messages] = (other, {message: place for place, message in enumerate(messages)})


def _turned(messages: Iterable[MessageId], place: Mapping[MessageId, int]) -> tuple[MessageId, MessageId] | None:
    """The first two neighbours among what is shared that stand the other way round."""
    shared = (message for message in messages if message in place)
    return next(((a, b) for a, b in pairwise(shared) if place[a] > place[b]), None)


def orders_fit_together(facts: Facts) -> Iterator[Violation]:
    """P9b: the union of all delivery orders has no cycle."""
    for name, views in facts.deliveries.items():
        circle = facts.circles[name]
        for view in views:
            inside = [message for message in view.messages if message in circle]
            if len(inside) > 1:
                reason = f"{tuple(inside[0])} before {tuple(inside[1])} fits no order that suits everybody"
                yield view.violation("P9b", view.sigma.deliveries[inside[1]], reason, inside[0])
                break


def no_holes(facts: Facts) -> Iterator[Violation]:
    """P9c: of two correct subscriptions, the one that began later delivers a suffix of what the other delivers.

    Of those without a filter: what different filters match is no suffix of anything.
    """
    for views in facts.deliveries.values():
        correct = [view for view in views if view.sigma.correct and view.sigma.wants is None]
        if not correct:
            continue
        longest = max(correct, key=lambda view: len(view.messages))
        for view in correct:
            for mine, theirs in zip(reversed(view.messages), reversed(longest.messages), strict=False):
                if mine != theirs:
                    log = longest.sigma.log
                    reason = f"{tuple(mine)} stands where {log.node}.{log.incarnation} delivers {tuple(theirs)}"
                    yield view.violation("P9c", view.sigma.deliveries[mine], reason, theirs)
                    break


# P13: the dependencies a publisher claims say exactly what happened before.


def headers_are_sound(facts: Facts) -> Iterator[Violation]:
    """P13. Never certain: in an incomplete trace, frontiers may lack what missing rows would add."""
    for causality in facts.causality.values():
        for message, row in causality.topic.published.items():
            yield from _unsound(causality, message, row)


def _unsound(causality: TopicCausality, message: MessageId, row: Event) -> Iterator[Violation]:
    named = [causality.row[dependency] for dependency in row.deps or ()]
    if message.counter > 1:
        named.append(causality.row[message._replace(counter=message.counter - 1)])
    real = causality.closure[causality.row[message]].copy()
    real[causality.column[message[:2]]] = message.counter - 1
    # A claim of a counter below 1 names nothing.
    claimed = causality.closure[named].max(axis=0, initial=0) if named else np.zeros_like(real)
    if (claimed == real).all():
        return
    for wrong, frontier, what in (
        (claimed < real, real, "is missing from the header, which is unsafe"),
        (claimed > real, claimed, "is claimed by the header but did not happen before"),
    ):
        for column in np.flatnonzero(wrong)[:1].tolist():
            other = causality.message(column, frontier[column])
            yield Violation(
                "P13",
                row.node,
                row.incarnation,
                row.seq,
                f"dependency {tuple(other)} of {tuple(message)} {what}",
                topic=row.topic,
                message=message,
                other=other,
                certain=False,
            )
