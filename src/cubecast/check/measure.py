"""Properties that hold with a probability: how often they held, with an interval. Never a verdict.

Follows decision 0059.
"""

from collections.abc import Callable, Sequence
from typing import Final

from cubecast.check.facts import Facts
from cubecast.check.history import message_of
from cubecast.check.verdict import Rate
from cubecast.ids import MessageId


def agreement(facts: Facts) -> Rate:
    """P4 measured: deliveries of correct subscriptions, of those and the holes that they were told of and that another
    correct subscription does not have."""
    kept = lost = 0
    for views in facts.deliveries.values():
        correct = [view for view in views if view.sigma.correct]
        somewhere = {message for view in correct for message in view.messages}
        for view in correct:
            told: set[MessageId] = {message_of(row) for row in view.sigma.gaps}
            kept += len(view.messages) + len(view.sigma.repeats)
            lost += len((told & somewhere) - view.sigma.deliveries.keys())
    return Rate(kept, kept + lost)


MEASURES: Final[dict[str, Callable[[Facts], Rate]]] = {"P4": agreement}


def measure(facts: Facts, names: Sequence[str]) -> dict[str, Rate]:
    return {name: MEASURES[name](facts) for name in names if name in MEASURES}
