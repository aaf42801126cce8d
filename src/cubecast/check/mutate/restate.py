"""Mutations of what nodes claim: starting cuts, confirmations, and the dependencies in headers."""

import random
from collections.abc import Iterator

from cubecast.check.facts import Deliveries
from cubecast.check.history import Publisher
from cubecast.check.mutate.study import REGISTRY, Edit, Study, pick
from cubecast.ids import Counter, MessageId
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind


def _statements(study: Study) -> Iterator[tuple[Deliveries, Event, MessageId]]:
    """Every stated cut: the subscription, the row that states it, the entry."""
    for view in study.all_views:
        sigma = view.sigma
        for row in sigma.log.rows[sigma.opened_seq :]:
            if row.topic == sigma.topic and row.kind == Kind.UNSUBSCRIBED:
                break
            if row.topic == sigma.topic:
                yield from ((view, row, entry) for entry in row.cut or ())


def _restated(row: Event, publisher: Publisher, counter: Counter) -> Event:
    entries = [entry if entry[:2] != publisher else entry._replace(counter=counter) for entry in row.cut or ()]
    return row._replace(cut=tuple(entries))


@REGISTRY.breaks("P2")
def cut_too_high(study: Study, rng: random.Random) -> list[Event] | None:
    """It excludes what is delivered."""
    choices = [
        (row, _restated(row, entry[:2], message.counter))
        for view, row, entry in _statements(study)
        for message in view.messages
        if message[:2] == entry[:2]
    ]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).replace(*choice).result()


@REGISTRY.breaks("P6")
def cut_too_low(study: Study, rng: random.Random) -> list[Event] | None:
    """It promises a message that was never delivered here."""
    choices = [
        (row, _restated(row, entry[:2], entry.counter - 1))
        for view, row, entry in _statements(study)
        if entry.counter and entry[:2] in view.sigma.heard
    ]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).replace(*choice).result()


@REGISTRY.breaks("K1")
def cut_names_the_unpublished(study: Study, rng: random.Random) -> list[Event] | None:
    choices = [
        (row, _restated(row, entry[:2], view.causality.topic.count.get(entry[:2], 0) + rng.randint(1, 3)))
        for view, row, entry in _statements(study)
    ]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).replace(*choice).result()


@REGISTRY.breaks("K1")
def cut_below_zero(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row, _restated(row, entry[:2], -1)) for _, row, entry in _statements(study)))
    return None if choice is None else Edit(study).replace(*choice).result()


@REGISTRY.breaks("K2")
def cut_not_causally_closed(study: Study, rng: random.Random) -> list[Event] | None:
    choices = []
    for view, row, entry in _statements(study):
        causality = view.causality
        for message in causality.topic.published:
            if message[:2] == entry[:2]:
                frontier = causality.causes([causality.row[message]])[0]
                frontier[causality.column[entry[:2]]] = 0
                if (frontier > view.start).any():
                    choices.append((row, _restated(row, entry[:2], message.counter)))
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).replace(*choice).result()


@REGISTRY.breaks("K3")
def cut_hides_what_was_confirmed(study: Study, rng: random.Random) -> list[Event] | None:
    choices = [
        (row, _restated(row, entry[:2], message.counter))
        for view, row, entry in _statements(study)
        for message, confirmed in view.causality.confirmations.items()
        if message[:2] == entry[:2] and confirmed & study.facts.bits[view.sigma]
    ]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).replace(*choice).result()


@REGISTRY.breaks("K0")
def cut_stated_late(study: Study, rng: random.Random) -> list[Event] | None:
    choices = []
    for view, row, entry in _statements(study):
        of_it = [delivery for message, delivery in view.sigma.deliveries.items() if message[:2] == entry[:2]]
        if of_it and row.kind == Kind.CUT:
            choices.append((row, of_it[0]))
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).move_after(*choice).result()


@REGISTRY.breaks("K0")
def cut_stated_twice(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row, row) for _, row, _ in _statements(study) if row.kind == Kind.CUT))
    return None if choice is None else Edit(study).insert_after(*choice).result()


@REGISTRY.breaks("K0")
def cut_outside_a_subscription(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(
        rng,
        (
            (row, row_0)
            for view, row, _ in _statements(study)
            if view.sigma.ordinal == 0
            for row_0 in [view.sigma.log.rows[view.sigma.opened_seq]]
        ),
    )
    return None if choice is None else Edit(study).move_before(*choice).result()


@REGISTRY.breaks("K0")
def confirmed_twice(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row, row) for row in study.of_kind(Kind.SUBSCRIBED)))
    return None if choice is None else Edit(study).insert_after(*choice).result()


@REGISTRY.breaks("K0")
def subscribed_to_twice(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row, row) for row in study.of_kind(Kind.SUBSCRIBE)))
    return None if choice is None else Edit(study).insert_after(*choice).result()


def _publications(study: Study) -> Iterator[tuple[Event, MessageId]]:
    for topic in study.facts.topics.values():
        yield from ((row, message) for message, row in topic.published.items())


@REGISTRY.breaks("P13")
def dependency_missing(study: Study, rng: random.Random) -> list[Event] | None:
    """A claimed dependency disappears that no other claim implies."""
    choices = []
    for row, message in _publications(study):
        causality = study.facts.causality[row.topic or ""]
        previous = [message._replace(counter=message.counter - 1)] if message.counter > 1 else []
        for gone in row.deps or ():
            left = [dependency for dependency in row.deps or () if dependency != gone]
            named = [causality.row[dependency] for dependency in left + previous]
            column = causality.column[gone[:2]]
            if not named or causality.closure[named, column].max() < gone.counter:
                choices.append((row, row._replace(deps=tuple(left))))
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).replace(*choice).result()


@REGISTRY.breaks("P13")
def dependency_invented(study: Study, rng: random.Random) -> list[Event] | None:
    choices = []
    for row, message in _publications(study):
        causality = study.facts.causality[row.topic or ""]
        frontier = causality.causes([causality.row[message]])[0]
        choices += [
            (row, row._replace(deps=(*(row.deps or ()), other)))
            for other in causality.topic.published
            if other.counter > frontier[causality.column[other[:2]]] and other != message
        ]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).replace(*choice).result()


@REGISTRY.breaks("P13")
def header_emptied(study: Study, rng: random.Random) -> list[Event] | None:
    choices = []
    for row, message in _publications(study):
        causality = study.facts.causality[row.topic or ""]
        column = causality.column[message[:2]]
        before = (
            causality.closure[causality.row[message._replace(counter=message.counter - 1)]]
            if message.counter > 1
            else 0
        )
        more = causality.causes([causality.row[message]])[0] > before
        more[column] = False
        if more.any():
            choices.append((row, row._replace(deps=None)))
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).replace(*choice).result()
