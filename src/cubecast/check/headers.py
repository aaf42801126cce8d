"""P13: the dependencies a publisher claims say exactly what happened before."""

from collections.abc import Iterator

import numpy as np

from cubecast.check.causality import TopicCausality
from cubecast.check.facts import Facts
from cubecast.check.verdict import Violation
from cubecast.ids import MessageId
from cubecast.trace.event import Event


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
