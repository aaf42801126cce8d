"""Mutations that add or falsify deliveries and publications: forged, repeated, misplaced, misnumbered."""

import random
from collections import Counter
from itertools import pairwise

from cubecast.check.history import message_of
from cubecast.check.mutate.study import REGISTRY, Edit, Study, pick, row_about
from cubecast.ids import MessageId
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind


@REGISTRY.breaks("P2")
def delivered_twice(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row,) for view in study.views for row in view.sigma.deliveries.values()))
    return None if choice is None else Edit(study).insert_after(choice[0], choice[0]).result()


@REGISTRY.breaks("P1")
def forged_by_a_known_publisher(study: Study, rng: random.Random) -> list[Event] | None:
    """The message after a publisher's last, delivered somewhere."""
    choice = pick(rng, ((row,) for view in study.views for row in view.sigma.deliveries.values()))
    if choice is None:
        return None
    message = message_of(choice[0])
    published = study.facts.topics[choice[0].topic or ""].count[message[:2]]
    forged = row_about(Kind.DELIVER, choice[0], message._replace(counter=published + 1))
    return Edit(study).insert_after(choice[0], forged).result()


@REGISTRY.breaks("P1")
def forged_by_nobody(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row,) for view in study.views for row in view.sigma.deliveries.values()))
    if choice is None:
        return None
    stranger = MessageId(max(node for node, _ in study.rows) + 1, 0, 1)
    return Edit(study).insert_after(choice[0], row_about(Kind.DELIVER, choice[0], stranger)).result()


def _states_cuts(rows: list[Event], topic: str) -> bool:
    return any(row.cut and row.topic == topic for row in rows)


@REGISTRY.breaks("P1")
def delivered_on_the_wrong_topic(study: Study, rng: random.Random) -> list[Event] | None:
    topics = study.facts.topics
    choices = [
        (row, row._replace(topic=name))
        for view in study.views
        for message, row in view.sigma.deliveries.items()
        for name in [*topics, "elsewhere"]
        if name not in topics or (message not in topics[name].published and not _states_cuts(study.log(row), name))
    ]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).replace(*choice).result()


def _told(study: Study) -> list[tuple[Event, Event]]:
    """Deliveries beside their publications, where both tell a digest."""
    return [
        (row, published)
        for topic in study.facts.topics.values()
        for message, row in topic.deliveries
        if (published := topic.published.get(message)) and None not in (row.digest, published.digest)
    ]


@REGISTRY.breaks("P1b")
def bytes_altered(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row, row._replace(digest=(row.digest or 0) ^ 1)) for row, _ in _told(study)))
    return None if choice is None else Edit(study).replace(*choice).result()


@REGISTRY.breaks("P1b")
def bytes_of_another(study: Study, rng: random.Random) -> list[Event] | None:
    """One message with the bytes of the one before it, as if a batch were cut in the wrong place."""
    rows = [row for row, _ in _told(study)]
    choices = [(b, b._replace(digest=a.digest)) for a, b in pairwise(rows) if a.digest != b.digest]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).replace(*choice).result()


@REGISTRY.breaks("P1b")
def published_as_something_else(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row, row._replace(digest=(row.digest or 0) + 1)) for _, row in _told(study)))
    return None if choice is None else Edit(study).replace(*choice).result()


@REGISTRY.breaks("P1")
def failed_but_delivered(study: Study, rng: random.Random) -> list[Event] | None:
    """The publisher is told that a delivered message failed."""
    choice = pick(
        rng,
        (
            (study.facts.topics[view.sigma.topic].published[message],)
            for view in study.views
            for message in view.messages
        ),
    )
    if choice is None:
        return None
    (publication,) = choice
    return Edit(study).insert_after(publication, row_about(Kind.FAILED, publication, message_of(publication))).result()


@REGISTRY.breaks("P1")
def failed_publication_delivered(study: Study, rng: random.Random) -> list[Event] | None:
    """A message that reached no subscriber appears at a subscriber, after everything else there."""
    choices = [
        (failed, list(view.sigma.deliveries.values())[-1])
        for failed in study.of_kind(Kind.FAILED)
        for view in study.views
        if view.sigma.topic == failed.topic and study.log(failed) is not view.sigma.log.rows
    ]
    choice = pick(rng, choices)
    if choice is None:
        return None
    failed, last = choice
    end = study.log(last)[-1]
    return Edit(study).insert_before(end, row_about(Kind.DELIVER, last, message_of(failed))).result()


@REGISTRY.breaks("P11")
def delivered_after_unsubscribed(study: Study, rng: random.Random) -> list[Event] | None:
    choices = []
    for end in study.of_kind(Kind.UNSUBSCRIBED):
        before = [row for row in study.log(end)[: end.seq] if row.kind == Kind.DELIVER and row.topic == end.topic]
        choices += [(end, row) for row in before]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).insert_after(*choice).result()


@REGISTRY.breaks("P10")
def delivered_again_after_restart(study: Study, rng: random.Random) -> list[Event] | None:
    choices = [
        (study.rows[node, incarnation][-1], row)
        for view in study.views
        for row in view.sigma.deliveries.values()
        for node, incarnation in study.rows
        if node == row.node and incarnation > row.incarnation
    ]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).insert_before(*choice).result()


@REGISTRY.breaks("K0")
def counter_used_twice(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row,) for row in study.of_kind(Kind.PUBLISH) if row.counter and row.counter > 1))
    if choice is None:
        return None
    (row,) = choice
    return Edit(study).replace(row, row._replace(counter=(row.counter or 0) - 1)).result()


@REGISTRY.breaks("K0")
def counter_left_out(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row,) for row in study.of_kind(Kind.PUBLISH)))
    if choice is None:
        return None
    (row,) = choice
    return Edit(study).replace(row, row._replace(counter=(row.counter or 0) + 1)).result()


@REGISTRY.breaks("K0")
def published_in_anothers_name(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row,) for row in study.of_kind(Kind.PUBLISH)))
    if choice is None:
        return None
    (row,) = choice
    return Edit(study).replace(row, row._replace(source=row.node + 1)).result()


@REGISTRY.breaks("K0")
def acknowledged_but_never_published(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row,) for row in study.of_kind(Kind.ACKNOWLEDGED)))
    if choice is None:
        return None
    (row,) = choice
    published = Counter(r.topic for r in study.log(row) if r.kind == Kind.PUBLISH)[row.topic]
    return Edit(study).insert_after(row, row._replace(counter=published + 1)).result()
