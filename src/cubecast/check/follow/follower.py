"""Verdicts on a run that goes on. Each holds up to a frontier: how far every node's journal was read and understood."""

import gc
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

from cubecast.check.checker import check_trace
from cubecast.check.follow.certifier import Certifier, Node
from cubecast.check.follow.journals import Journals
from cubecast.check.verdict import Report, Verdict, Violation
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.journal import NOT_DECIDABLE, Restriction, is_partial, unfolded, windows
from cubecast.trace.reader import Trace

# The reference checker on the rows of some topics of journals that go on: what is certain there stays.


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


# The frontier.

MOST_WITNESSES = 10
ROWS_AT_THE_END = 2_000_000
"""Of a run that has ended so many are judged once more as a whole, by what only an end decides."""


@dataclass
class Standing:
    """What is known by now."""

    run: str
    verdict: Verdict
    rows: int
    remembered: int
    """Publications in memory."""
    up_to: float
    """The time of the last row that was understood at the node that is furthest behind."""
    violations: list[Violation] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """Why nothing better can be said."""
    has_ended: bool = False
    decided_at_the_end: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": str(self.verdict),
            "up_to": self.up_to,
            "rows": self.rows,
            "remembered": self.remembered,
            "witnesses": [one.to_json(self.run) for one in self.violations[:MOST_WITNESSES]],
            "violations": len(self.violations),
            "unknown_because": self.reasons,
            "has_ended": self.has_ended,
            "decided_at_the_end": self.decided_at_the_end,
        }


class Follower:
    """`look` again and again."""

    def __init__(self, directories: list[Path], info: RunInfo, patience: float = 5.0) -> None:
        self._journals, self.info, self._patience = Journals(directories), info, patience
        self._certifier = Certifier()
        self._violations: dict[tuple[Any, ...], Violation] = {}
        self._examined: dict[str, int] = {}
        """Topics that were suspected, and how much there was to read then."""
        self._stuck_since: float | None = None
        self._at_the_end: Verdict | None = None

    def look(self) -> Standing:
        """Read what is there by now; as far as causes are there, it is judged."""
        certifier, has_news = self._certifier, self._read()
        stuck = [one for one in certifier.nodes.values() if one.waits_for is not None]
        self._stuck_since = (self._stuck_since or monotonic()) if stuck and not has_news else None
        overdue = self._stuck_since is not None and monotonic() - self._stuck_since >= self._patience
        ends_count = certifier.rows <= ROWS_AT_THE_END
        suspected = {one.topic for one in certifier.suspicions if ends_count or not one.is_an_end}
        self._examine(suspected | (_topics_of(stuck) if overdue else set()))
        certifier.suspicions.clear()
        if self._journals.have_ended and not stuck and not has_news:
            self._judge_the_end()
        return self._standing(stuck if overdue else [])

    def _read(self) -> bool:
        """All that is new, piece by piece, and whether there was anything."""
        collecting, has_news = gc.isenabled(), False
        gc.disable()  # a million lists and no cycles: collections would take most of the time of reading
        try:
            while pieces := list(self._journals.new_lines()):
                has_news = True
                for node, lines in pieces:
                    self._certifier.add(node, lines)
                self._certifier.run()
        finally:
            if collecting:
                gc.enable()
        return has_news

    def _examine(self, topics: set[str]) -> None:
        """Closely, unless nothing was said since the last time."""
        size = self._journals.size
        due = [one for one in sorted(topics) if self._examined.get(one) != size]
        if due:
            self._examined |= dict.fromkeys(due, size)
            self._note(examine(self._journals, self.info, set(due)).violations)

    def _note(self, violations: Any) -> None:
        for one in violations:
            key = one.promise, one.node, one.incarnation, one.seq, one.topic, one.message
            if one.certain:
                self._violations.setdefault(key, one)

    def _judge_the_end(self) -> None:
        if self._at_the_end is None and self._certifier.rows <= ROWS_AT_THE_END:
            report = examine(self._journals, self.info, None)
            self._note(report.violations)
            self._at_the_end = report.verdict

    def _standing(self, stuck: list[Node]) -> Standing:
        certifier = self._certifier
        violations = sorted(self._violations.values(), key=lambda one: one.size)
        contradictions = [one for one in violations if one.promise == "K0"]
        violations = contradictions or violations  # of a run that contradicts itself nothing else is known
        reasons = [f"{name}: the journal could not be written any more" for name in self._journals.lost]
        for one in stuck:
            topic, (node, life), counter = one.waits_for or ("", (0, 0), 0)
            wanted = f"{topic} {node}.{life}.{counter}, of whose publication no journal tells"
            reasons.append(f"node {one.node}.{one.incarnation} goes no further: it needs {wanted}")
        if not certifier.rows:
            reasons.append("the journals have no lines yet")
        if self._at_the_end is Verdict.UNKNOWN:
            reasons.append("the run ended, and something is missing: cubecast verify says what")
        verdict = Verdict.VIOLATED if violations else Verdict.UNKNOWN if reasons else Verdict.VALID
        return Standing(
            self.info.run,
            verdict,
            certifier.rows,
            sum(topic.size for topic in certifier.topics.values()),
            min((one.time for one in certifier.nodes.values()), default=0.0),
            violations,
            reasons,
            self._journals.have_ended,
            self._at_the_end is not None,
        )


def _topics_of(stuck: list[Node]) -> set[str]:
    """What nodes wait for, and what they said behind it that was not looked at."""
    topics = {one.waits_for[0] for one in stuck if one.waits_for is not None}
    return topics | {line[2] for one in stuck for line in one.waiting if len(line) > 2 and isinstance(line[2], str)}
