"""P9a, P9b, P9c: everybody sees the same order, the orders fit together, and nobody has a hole."""

from collections.abc import Iterator
from itertools import combinations, pairwise

from cubecast.check.facts import Facts
from cubecast.check.verdict import Violation


def same_order(facts: Facts) -> Iterator[Violation]:
    """P9a: two subscriptions deliver what they share in the same order. Compares pairs only if P9b failed."""
    for name, views in facts.deliveries.items():
        if not facts.circles[name]:
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
    for name, views in facts.deliveries.items():
        circle = facts.circles[name]
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
