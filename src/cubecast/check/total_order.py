"""P9a, P9b, P9c: everybody sees the same order, the orders fit together, and nobody has a hole."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, pairwise

from cubecast.check.facts import Deliveries, Facts
from cubecast.check.verdict import Violation
from cubecast.ids import MessageId


def same_order(facts: Facts) -> Iterator[Violation]:
    """P9a: two subscriptions deliver what they share in the same order. Compares pairs only if P9b failed."""
    for views in facts.deliveries.values():
        if not _left_in_circles(views):
            continue
        places = [{message: place for place, message in enumerate(view.messages)} for view in views]
        for (one, place_in_one), (other, _) in combinations(zip(views, places, strict=True), 2):
            shared = [message for message in other.messages if message in place_in_one]
            for a, b in pairwise(shared):
                if place_in_one[a] > place_in_one[b]:
                    log = one.sigma.log
                    row = other.sigma.deliveries[b]
                    reason = f"{tuple(a)} then {tuple(b)} here, the other way round at {log.node}.{log.incarnation}"
                    yield other.violation("P9a", row, reason, a)
                    break


def orders_fit_together(facts: Facts) -> Iterator[Violation]:
    """P9b: the union of all delivery orders has no cycle."""
    for views in facts.deliveries.values():
        circle = _left_in_circles(views)
        for view in views:
            inside = [message for message in view.messages if message in circle]
            if len(inside) > 1:
                reason = f"{tuple(inside[0])} before {tuple(inside[1])} fits no order that suits everybody"
                yield view.violation("P9b", view.sigma.deliveries[inside[1]], reason, inside[0])
                break


def no_holes(facts: Facts) -> Iterator[Violation]:
    """P9c: of two correct subscriptions, the one that began later delivers a suffix of what the other delivers."""
    for views in facts.deliveries.values():
        correct = [view for view in views if view.sigma.correct]
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


def _left_in_circles(views: list[Deliveries]) -> set[MessageId]:
    """Messages on, or squeezed between, cycles of the union of the delivery orders; empty when there are none."""
    after: defaultdict[MessageId, set[MessageId]] = defaultdict(set)
    before: defaultdict[MessageId, set[MessageId]] = defaultdict(set)
    for view in views:
        for a, b in pairwise(view.messages):
            after[a].add(b)
            before[b].add(a)
    left = {message for view in views for message in view.messages}
    for into, out in ((before, after), (after, before)):
        degree = {message: len(into[message] & left) for message in left}
        free = [message for message, count in degree.items() if not count]
        while free:
            message = free.pop()
            left.discard(message)
            for following in out[message]:
                if following in left:
                    degree[following] -= 1
                    if not degree[following]:
                        free.append(following)
    return left
