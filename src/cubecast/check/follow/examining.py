"""The reference checker on the rows of some topics of journals that go on: what is certain there stays."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from cubecast.check.checker import check_trace
from cubecast.check.follow.journals import Journals
from cubecast.check.verdict import Report
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.journal import unfolded
from cubecast.trace.partial import NOT_DECIDABLE, Restriction, is_partial, windows
from cubecast.trace.reader import Trace


def examine(journals: Journals, info: RunInfo, topics: Collection[str] | None) -> Report:
    """Of all topics without any named. Places in the report are those of the whole logs."""
    known: dict[tuple[int, int], Any] = {}
    for node, files in journals.read_again():
        known |= windows(node, (line for _, lines in files for line in lines))
    restriction = Restriction(known) if is_partial(known) else None
    if restriction is not None:
        info = replace(info, promises=tuple(one for one in info.promises if one not in NOT_DECIDABLE))
    places: dict[tuple[int, int], list[int]] = {}
    events = [
        event
        for node, files in journals.read_again()
        for event in _restricted(unfolded(node, files), topics, places, restriction)
    ]
    report = check_trace(Trace(info, events), info.promises)
    return replace(report, violations=tuple(_placed(one, places) for one in report.violations))


def _restricted(
    events: Iterator[Event],
    topics: Collection[str] | None,
    places: dict[tuple[int, int], list[int]],
    restriction: Restriction | None,
) -> Iterator[Event]:
    """Rows of these topics and those that are about none, numbered without the others."""
    for event in events if restriction is None else restriction.rows(events):
        if topics is None or event.topic is None or event.topic in topics:
            kept = places.setdefault((event.node, event.incarnation), [])
            kept.append(event.seq)
            yield event if topics is None else event._replace(seq=len(kept) - 1)


def _placed(violation: Any, places: dict[tuple[int, int], list[int]]) -> Any:
    kept = places.get((violation.node, violation.incarnation), [])
    seq = kept[violation.seq] if violation.seq < len(kept) else violation.seq
    other = violation.other_seq
    return replace(violation, seq=seq, other_seq=kept[other] if other is not None and other < len(kept) else other)
