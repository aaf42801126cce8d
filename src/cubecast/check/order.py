"""P5, P6, P7, P8: FIFO and causal order, with and without holes."""

from collections.abc import Iterator

import numpy as np

from cubecast.check.facts import Deliveries, Facts
from cubecast.check.history import Publisher, publisher_of
from cubecast.check.verdict import Violation
from cubecast.ids import MessageId
from cubecast.trace.event import Event


def fifo(facts: Facts) -> Iterator[Violation]:
    """P5: one publisher's messages are delivered in the order of their counters."""
    for view in facts.all_deliveries():
        highest: dict[Publisher, MessageId] = {}
        for message, row in view.sigma.deliveries.items():
            publisher = publisher_of(message)
            before = highest.get(publisher)
            if before is None or before.counter < message.counter:
                highest[publisher] = message
            else:
                yield view.violation("P5", row, f"{tuple(message)} is delivered after {tuple(before)}", before)


def gapless_fifo(facts: Facts) -> Iterator[Violation]:
    """P6: from the cut on, one publisher's messages are delivered without a hole."""
    for view in facts.all_deliveries():
        if not view.messages:
            continue
        places = np.arange(len(view.messages))
        reach = view.reach[places, view.columns]
        for place in np.flatnonzero((reach < view.counters - 1) & (view.counters > view.start[view.columns])).tolist():
            message = view.messages[place]
            missing = message._replace(counter=int(reach[place]) + 1)
            reason = f"{tuple(message)} is delivered, but {tuple(missing)} was not delivered before it"
            yield view.violation("P6", _row(view, place), reason, missing)


def causal(facts: Facts) -> Iterator[Violation]:
    """P7: of two delivered messages, the cause comes first."""
    for view in facts.all_deliveries():
        if not view.messages:
            continue
        late = view.later <= view.causes
        for place in np.flatnonzero(late.any(axis=1)).tolist():
            column = int(np.argmax(late[place]))
            cause = view.causality.message(column, view.later[place, column])
            reason = f"{tuple(view.messages[place])} is delivered before {tuple(cause)}, which it depends on"
            yield view.violation("P7", _row(view, place), reason, cause)


def gapless_causal(facts: Facts) -> Iterator[Violation]:
    """P8 but for K2: every cause of a delivered message is in the cut, delivered before it or excused before it."""
    for view in facts.all_deliveries():
        if not view.messages:
            continue
        absent = view.causes > view.reach[:-1]
        for place in np.flatnonzero(absent.any(axis=1)).tolist():
            yield _missing_cause(view, place, np.flatnonzero(absent[place]).tolist())


def _missing_cause(view: Deliveries, place: int, columns: list[int]) -> Violation:
    column = min(columns, key=view.is_implied)
    missing = view.causality.message(column, view.reach[place, column] + 1)
    reason = f"{tuple(view.messages[place])} is delivered without {tuple(missing)}, which it depends on"
    certain = view.sigma.log.whole or not view.is_implied(column)
    return view.violation("P8", _row(view, place), reason, missing, certain)


def _row(view: Deliveries, place: int) -> Event:
    return view.sigma.deliveries[view.messages[place]]
