"""Mutations that move deliveries: causes after effects, later before earlier, two nodes in disagreement."""

import random
from collections.abc import Iterator
from itertools import combinations, pairwise

from cubecast.check.facts import Deliveries
from cubecast.check.mutate.study import REGISTRY, Edit, Study, pick
from cubecast.ids import MessageId
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind

MOST_MOVED = 40
"""Deliveries per subscription that are considered: all pairs of a long one would take for ever."""


def _movable_pairs(study: Study, view: Deliveries) -> Iterator[tuple[MessageId, MessageId, Event, Event]]:
    """Deliveries of one subscription whose order can change without changing what its node publishes."""
    deliveries = list(view.sigma.deliveries.items())[:MOST_MOVED]
    for (a, first), (b, second) in combinations(deliveries, 2):
        if not study.publishes_between(first, second):
            yield a, b, first, second


@REGISTRY.breaks("P7")
def cause_after_effect(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(
        rng,
        (
            (first, second)
            for view in study.views
            for a, b, first, second in _movable_pairs(study, view)
            if a[:2] != b[:2] and study.depends(view, b, a)
        ),
    )
    return None if choice is None else Edit(study).move_after(*choice).result()


@REGISTRY.breaks("P5")
def later_before_earlier(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(
        rng,
        (
            (first, second)
            for view in study.views
            for a, b, first, second in _movable_pairs(study, view)
            if a[:2] == b[:2]
        ),
    )
    return None if choice is None else Edit(study).move_after(*choice).result()


@REGISTRY.breaks("K0")
def delivered_before_published(study: Study, rng: random.Random) -> list[Event] | None:
    """A node delivers its own message before it publishes it."""
    choice = pick(
        rng,
        (
            (delivery, study.facts.topics[view.sigma.topic].published[message])
            for view in study.views
            for message, delivery in view.sigma.deliveries.items()
            if message[:2] == (delivery.node, delivery.incarnation)
        ),
    )
    return None if choice is None else Edit(study).move_before(*choice).result()


def _shared_pairs(study: Study) -> Iterator[tuple[Event, ...]]:
    """Neighbours in one subscription that another one delivers too."""
    for views in study.facts.deliveries.values():
        for view, other in combinations(views, 2):
            for a, b in pairwise(message for message in view.messages if message in other.sigma.deliveries):
                first, second = view.sigma.deliveries[a], view.sigma.deliveries[b]
                if not study.publishes_between(first, second):
                    yield first, second


@REGISTRY.breaks("P9a", total_order=True)
def two_nodes_disagree(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, _shared_pairs(study))
    return None if choice is None else Edit(study).move_after(*choice).result()


@REGISTRY.breaks("P9b", total_order=True)
def three_nodes_run_in_a_circle(study: Study, rng: random.Random) -> list[Event] | None:
    """a b · b c · c a: no two of them disagree about a pair, all three together do."""
    choices = []
    for views in study.facts.deliveries.values():
        for trio in combinations([view for view in views if len(view.messages) >= 3], 3):
            shared = set.intersection(*(set(view.messages) for view in trio))
            if len(shared) >= 3:
                choices.append((trio, [message for message in trio[0].messages if message in shared][:3]))
    if not choices:
        return None
    (one, two, three), (a, b, c) = rng.choice(choices)
    edit = Edit(study).remove(one.sigma.deliveries[c], two.sigma.deliveries[a], three.sigma.deliveries[b])
    return edit.move_after(three.sigma.deliveries[a], three.sigma.deliveries[c]).result()


@REGISTRY.breaks("P9c", total_order=True)
def one_node_has_a_hole(study: Study, rng: random.Random) -> list[Event] | None:
    choices = []
    for views in study.facts.deliveries.values():
        correct = [view for view in views if view.sigma.correct]
        for view, other in combinations(correct, 2):
            if view.messages and view.messages == other.messages:
                choices += [(row,) for row in list(view.sigma.deliveries.values())[1:]]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).remove(*choice).result()


@REGISTRY.breaks("P11", "K0")
def delivered_before_subscribing(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(
        rng,
        (
            (next(iter(view.sigma.deliveries.values())), view.sigma.log.rows[view.sigma.opened_seq])
            for view in study.views
        ),
    )
    return None if choice is None else Edit(study).move_before(*choice).result()


@REGISTRY.breaks("P11")
def unsubscribed_too_early(study: Study, rng: random.Random) -> list[Event] | None:
    """The end of a subscription is stated before its last delivery."""
    choices = []
    for end in study.of_kind(Kind.UNSUBSCRIBED):
        before = [row for row in study.log(end)[: end.seq] if row.topic == end.topic]
        after_leaving = before[max(i for i, row in enumerate(before) if row.kind == Kind.UNSUBSCRIBE) :]
        late = [row for row in after_leaving if row.kind == Kind.DELIVER]
        if late and not any(row.kind in (Kind.CUT, Kind.SUBSCRIBED) for row in after_leaving):
            choices.append((end, late[-1]))
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).move_before(*choice).result()
