"""Mutations that take deliveries, acknowledgements and gap announcements away, or make them come too late."""

import random
from collections.abc import Iterator

from cubecast.check.facts import Deliveries
from cubecast.check.history import message_of
from cubecast.check.mutate.study import REGISTRY, Edit, Study, pick, row_about
from cubecast.ids import MessageId
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind


def _last_of_publisher(study: Study) -> Iterator[tuple[Deliveries, MessageId]]:
    """What a correct subscription delivered last of a publisher, though it would owe it without that delivery too."""
    for view in study.views:
        last = {message[:2]: message for message in view.messages}
        yield from ((view, message) for message in last.values() if study.owes(view, message))


def _delivered_by_another_correct(study: Study, view: Deliveries, message: MessageId) -> bool:
    others = study.facts.deliveries[view.sigma.topic]
    return any(o is not view and o.sigma.correct and message in o.sigma.deliveries for o in others)


@REGISTRY.breaks("P6")
def delivery_lost_in_the_middle(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(
        rng,
        (
            (row,)
            for view in study.views
            for message, row in view.sigma.deliveries.items()
            if message._replace(counter=message.counter + 1) in view.sigma.deliveries
        ),
    )
    return None if choice is None else Edit(study).remove(*choice).result()


@REGISTRY.breaks("P8")
def cause_lost(study: Study, rng: random.Random) -> list[Event] | None:
    """A delivery disappears whose effect, by another publisher, is delivered."""
    choices = []
    for view, message in _last_of_publisher(study):
        row = view.sigma.deliveries[message]
        for effect, later in view.sigma.deliveries.items():
            caused = effect[:2] != message[:2] and study.depends(view, effect, message)
            if caused and not study.publishes_between(row, later):
                choices.append((row,))
                break
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).remove(*choice).result()


@REGISTRY.breaks("P3b")
def own_message_lost(study: Study, rng: random.Random) -> list[Event] | None:
    """A node does not deliver the last message it published itself while it was subscribed."""
    choices = []
    for view, message in _last_of_publisher(study):
        sigma, published = view.sigma, study.facts.topics[view.sigma.topic].published
        mine = message[:2] == (sigma.log.node, sigma.log.incarnation) and message in published
        if mine and sigma.correct and sigma.confirmed is not None and published[message].seq > sigma.confirmed.seq:
            choices.append((sigma.deliveries[message],))
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).remove(*choice).result()


@REGISTRY.breaks("P4")
def last_delivery_lost(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(
        rng,
        (
            (view.sigma.deliveries[message],)
            for view, message in _last_of_publisher(study)
            if _delivered_by_another_correct(study, view, message)
        ),
    )
    return None if choice is None else Edit(study).remove(*choice).result()


@REGISTRY.breaks("P3", "P4")
def all_deliveries_of_a_subscription_lost(study: Study, rng: random.Random) -> list[Event] | None:
    choices = [
        tuple(view.sigma.deliveries.values())
        for view in study.views
        if view.sigma.correct
        and any(
            message[:2] in view.sigma.stated and _delivered_by_another_correct(study, view, message)
            for message in view.messages
        )
    ]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).remove(*choice).result()


@REGISTRY.breaks("P3")
def acknowledged_but_not_delivered(study: Study, rng: random.Random) -> list[Event] | None:
    choices = []
    for view, message in _last_of_publisher(study):
        if study.facts.logs[message[:2]].correct:
            choices.append((view.sigma.deliveries[message], study.rows[message[:2]][-1]))
    choice = pick(rng, choices)
    if choice is None:
        return None
    delivery, end = choice
    acknowledged = row_about(Kind.ACKNOWLEDGED, delivery, message_of(delivery))
    return Edit(study).insert_before(end, acknowledged).remove(delivery).result()


@REGISTRY.breaks("P4u")
def only_the_departed_delivered_it(study: Study, rng: random.Random) -> list[Event] | None:
    choices = []
    for view, message in _last_of_publisher(study):
        others = study.facts.deliveries[view.sigma.topic]
        if any(not o.sigma.correct and message in o.sigma.deliveries for o in others):
            choices.append(
                tuple(o.sigma.deliveries[message] for o in others if o.sigma.correct and message in o.sigma.deliveries)
            )
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).remove(*choice).result()


@REGISTRY.breaks("P12")
def held_for_ever(study: Study, rng: random.Random) -> list[Event] | None:
    """Received, not excluded, never delivered."""
    choices = []
    for view in study.views:
        if not view.sigma.correct:
            continue
        received = view.sigma.received
        log = view.sigma.log
        elsewhere = [m for m, row in study.facts.topics[view.sigma.topic].deliveries if study.log(row) is log.rows]
        choices += [(view.sigma.deliveries[m],) for m in view.messages if m in received and elsewhere.count(m) == 1]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).remove(*choice).result()


def _needed_gaps(study: Study) -> Iterator[tuple[Event, Event]]:
    """Gap rows with the first delivery after them: the model announces a loss right before the first effect."""
    for view in study.views:
        for gap in view.sigma.gaps:
            after = [row for row in view.sigma.deliveries.values() if row.seq > gap.seq]
            if after and study.depends(view, message_of(after[0]), message_of(gap)):
                yield gap, after[0]


@REGISTRY.breaks("P8")
def gap_not_announced(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((gap,) for gap, _ in _needed_gaps(study)))
    return None if choice is None else Edit(study).remove(*choice).result()


@REGISTRY.breaks("P8")
def gap_announced_too_late(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, _needed_gaps(study))
    return None if choice is None else Edit(study).move_after(*choice).result()


@REGISTRY.breaks("P12")
def gap_for_a_delivered_message(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row,) for view in study.views if view.sigma.correct for row in view.sigma.deliveries.values()))
    if choice is None:
        return None
    (delivery,) = choice
    return Edit(study).insert_after(delivery, row_about(Kind.GAP, delivery, message_of(delivery))).result()


@REGISTRY.breaks("P12")
def gap_instead_of_a_delivery(study: Study, rng: random.Random) -> list[Event] | None:
    """One correct node announces as lost what another correct node delivers."""
    choices = []
    for view in study.views:
        if view.sigma.correct:
            choices += [
                (row,)
                for message, row in view.sigma.deliveries.items()
                if _delivered_by_another_correct(study, view, message)
            ]
    choice = pick(rng, choices)
    if choice is None:
        return None
    (delivery,) = choice
    return Edit(study).replace(delivery, delivery._replace(kind=str(Kind.GAP))).result()
