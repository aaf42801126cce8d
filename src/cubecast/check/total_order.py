"""P9a, P9b, P9c: everybody sees the same order, the orders fit together, and nobody has a hole."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from cubecast.check.facts import Deliveries, Facts
from cubecast.check.verdict import Violation
from cubecast.ids import MessageId


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
