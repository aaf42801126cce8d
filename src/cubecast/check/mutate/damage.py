"""Mutations that damage the trace itself: lost, repeated and unreadable rows. Most of them only make it UNKNOWN."""

import random

from cubecast.check.mutate.study import REGISTRY, Edit, Study, pick
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind


@REGISTRY.breaks()
def quiescence_lost(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((rows[-1],) for rows in study.rows.values() if len(rows) > 1))
    return None if choice is None else Edit(study).remove(*choice).result()


@REGISTRY.breaks()
def row_lost(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row,) for rows in study.rows.values() for row in rows[:-1]))
    return None if choice is None else Edit(study).remove(*choice).unnumbered()


@REGISTRY.breaks()
def second_half_lost(study: Study, rng: random.Random) -> list[Event] | None:
    choices = [tuple(rows[len(rows) // 2 :]) for rows in study.rows.values() if len(rows) > 1]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).remove(*choice).result()


@REGISTRY.breaks()
def node_lost(study: Study, rng: random.Random) -> list[Event] | None:
    gone = rng.choice(sorted({node for node, _ in study.rows}))
    return [row for rows in study.rows.values() for row in rows if row.node != gone]


@REGISTRY.breaks()
def row_unreadable(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row,) for row in study.of_kind(Kind.DELIVER, Kind.PUBLISH)))
    if choice is None:
        return None
    return Edit(study).replace(choice[0], choice[0]._replace(counter=None)).result()


@REGISTRY.breaks()
def kind_unknown(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row,) for rows in study.rows.values() for row in rows))
    return None if choice is None else Edit(study).replace(choice[0], choice[0]._replace(kind="deliverd")).result()


@REGISTRY.breaks("K0")
def place_taken_twice(study: Study, rng: random.Random) -> list[Event] | None:
    choice = pick(rng, ((row,) for rows in study.rows.values() for row in rows[1:]))
    if choice is None:
        return None
    (row,) = choice
    return Edit(study).replace(row, row._replace(seq=row.seq - 1)).unnumbered()


@REGISTRY.breaks("K0")
def acts_after_its_end(study: Study, rng: random.Random) -> list[Event] | None:
    choices = [
        (rows[-1], row) for rows in study.rows.values() if rows[-1].kind in (Kind.CRASH, Kind.STOP) for row in rows[:-1]
    ]
    choice = pick(rng, choices)
    return None if choice is None else Edit(study).insert_after(*choice).result()
