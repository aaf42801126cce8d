"""K1, K2, K3: a starting cut names what exists, is closed under causes, and hides nothing it confirmed to deliver."""

from collections.abc import Iterator

import numpy as np

from cubecast.check.facts import Deliveries, Facts
from cubecast.check.history import Publisher
from cubecast.check.verdict import Violation
from cubecast.ids import MessageId
from cubecast.trace.event import Event


def cut_names_published(facts: Facts) -> Iterator[Violation]:
    """K1: 0 ≤ cut ≤ number of publications."""
    for view in facts.all_deliveries():
        count = view.causality.topic.count
        for publisher, cut in view.sigma.stated.items():
            published = count.get(publisher, 0)
            if cut < 0:
                yield _at_statement(view, "K1", publisher, f"the cut of publisher {publisher} is {cut}")
            elif cut > published:
                reason = f"the cut of publisher {publisher} ends at {cut}, but it published {published}"
                yield _at_statement(view, "K1", publisher, reason, certain=facts.is_whole(publisher))


def cut_is_closed(facts: Facts) -> Iterator[Violation]:
    """K2: m in the cut, a → m ⇒ a in the cut. Frontiers grow with the counter, so the last message speaks for all."""
    for view in facts.all_deliveries():
        causality = view.causality
        for publisher, last in view.excluded:
            message = MessageId(*publisher, last)
            frontier = causality.causes([causality.row[message]])[0]
            frontier[causality.column[publisher]] = 0
            open_columns = np.flatnonzero(frontier > view.start)
            if open_columns.size:
                column = min(open_columns.tolist(), key=view.is_implied)
                cause = causality.message(column, frontier[column])
                certain = view.sigma.log.whole or not view.is_implied(column)
                reason = f"the cut excludes {tuple(message)} but not {tuple(cause)}, which it depends on"
                yield _at_statement(view, "K2", publisher, reason, cause, certain)


def cut_is_honest(facts: Facts) -> Iterator[Violation]:
    """K3: what was published after the confirmation is not in the cut."""
    for view in facts.all_deliveries():
        bit = facts.bits[view.sigma]
        for publisher, last in view.excluded:
            message = MessageId(*publisher, last)
            if view.causality.confirmations[message] & bit:
                reason = f"the cut excludes {tuple(message)}, published after the subscription was confirmed"
                yield _at_statement(view, "K3", publisher, reason, message)


def _at_statement(
    view: Deliveries,
    promise: str,
    publisher: Publisher,
    reason: str,
    other: MessageId | None = None,
    certain: bool = True,
) -> Violation:
    return view.violation(promise, _statement(view, publisher), reason, other, certain)


def _statement(view: Deliveries, publisher: Publisher) -> Event:
    """The row that stated this publisher's cut."""
    sigma = view.sigma
    return next(
        row
        for row in sigma.log.rows[sigma.opened_seq :]
        if row.topic == sigma.topic and row.cut and any(one[:2] == publisher for one in row.cut)
    )
