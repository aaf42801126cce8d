"""What applications recorded of what they published and got, judged without looking at any journal.

A record belongs to one application, that is, to one life of its process. It is a file of lines, each a JSON array,
written before what it tells of can be seen elsewhere: `start`, `ready` (topic, when), `publish` (topic, number, the
last number of every other application heard on that topic before, when), `deliver` (topic, application, number, and
the message's name: source, incarnation, counter), `gap` (topic, reason, runs of names: source, incarnation, first and
last counter; none where nobody knows them), `wrong` (content nobody published), `end` (it lived until everything was
at rest). Times are of the machine's one steady clock.

What is asked of each application and topic:

- nothing twice, the numbers of each other application in order, no effect before its cause, nothing made up, nothing
  that a gap named before;
- of every other application every message from the first on that was published when this one was ready, or that it
  got, up to the last one that anybody who lived to the end has, or that its living publisher published. It was got, or
  a gap told before anything later of the same publisher names it. A gap without names excuses what was published up to
  the moment when the subscription was ready again, and nothing on either side of that.
"""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from cubecast.ids import Topic

Line = list[Any]
Message = tuple[Topic, str, int]
Name = tuple[Topic, int, int, int]
"""Topic, source, incarnation, counter: what a gap says of a message."""


@dataclass
class Findings:
    """All but the first four are mistakes."""

    published: int = 0
    delivered: int = 0
    gaps: int = 0
    unnamed: int = 0
    """Of these gaps, those that could not say what is missing."""
    lost: int = 0
    """Not delivered, and nobody was told."""
    doubled: int = 0
    disordered: int = 0
    before_cause: int = 0
    made_up: int = 0
    witnesses: list[str] = field(default_factory=list)

    @property
    def mistakes(self) -> int:
        return self.lost + self.doubled + self.disordered + self.before_cause + self.made_up

    def note(self, kind: str, witness: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.witnesses) < 10:
            self.witnesses.append(f"{kind}: {witness}")

    def __add__(self, other: "Findings") -> "Findings":
        names = [one.name for one in fields(self)]
        return Findings(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass
class Record:
    name: str
    lines: list[Line]

    @property
    def lived(self) -> bool:
        return bool(self.lines) and self.lines[-1][0] == "end"

    @property
    def topics(self) -> set[Topic]:
        return {line[1] for line in self.lines if line[0] == "ready"}


def load(directory: Path) -> list[Record]:
    """A last line that was torn by a kill is left out."""
    records = []
    for path in sorted(directory.glob("app-*.jsonl")):
        text = path.read_text()
        whole = text[: text.rfind("\n") + 1]
        lines = [json.loads(line) for line in whole.splitlines()]
        if lines:
            records.append(Record(lines[0][1], lines))
    return records


class _Facts:
    """What all records together say."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.causes: dict[Message, dict[str, int]] = {}
        self.times: dict[tuple[Topic, str], list[float]] = defaultdict(list)
        """When each application published its first, second, … message on a topic."""
        self.messages: dict[Name, tuple[str, int]] = {}
        self.last: dict[tuple[Topic, str], int] = defaultdict(int)
        """The last number that must be everywhere."""
        for record in records:
            for kind, *what in record.lines:
                if kind == "publish":
                    self._published(record, *what)
                elif kind == "deliver":
                    topic, by, number, name = what
                    self.messages[topic, *name] = by, number
                    if record.lived:
                        self.last[topic, by] = max(self.last[topic, by], number)

    def _published(self, record: Record, topic: Topic, number: int, heard: dict[str, int], at: float) -> None:
        self.causes[topic, record.name, number] = heard
        self.times[topic, record.name].append(at)
        if record.lived:
            self.last[topic, record.name] = max(self.last[topic, record.name], number)

    def first_after(self, topic: Topic, by: str, at: float) -> int:
        """The number of the first message published after that moment; one more than there are, if none was."""
        return bisect_right(self.times[topic, by], at) + 1

    def named(self, topic: Topic, runs: Iterable[Iterable[int]]) -> set[tuple[str, int]]:
        """Those of the named ones that anybody has."""
        names = [(topic, source, life, n) for source, life, first, last in runs for n in range(first, last + 1)]
        return {self.messages[name] for name in names if name in self.messages}


def judge(records: Iterable[Record]) -> Findings:
    everybody = list(records)
    facts, findings = _Facts(everybody), Findings()
    findings.published = len(facts.causes)
    for record in everybody:
        for topic in sorted(record.topics):
            _Hearing(record, topic, facts, findings).judge()
    return findings


class _Hearing:
    """One application's messages on one topic."""

    def __init__(self, record: Record, topic: Topic, facts: _Facts, findings: Findings) -> None:
        self._record, self._topic, self._facts, self._findings = record, topic, facts, findings
        self._where: dict[tuple[str, int], int] = {}
        self._newest: dict[str, tuple[int, int]] = {}
        """Per publisher the last number, and at which line it came."""
        self._ready_at: tuple[int, float] | None = None
        """The line, and when, of the first time."""
        self._named: set[tuple[str, int]] = set()
        self._gap_at = -1
        """The line of the last gap without names."""
        self._again_at: float | None = None
        """When the subscription was ready again after that."""

    def judge(self) -> None:
        handlers: dict[str, Callable[..., None]] = {
            "gap": self._gap,
            "ready": self._ready,
            "wrong": self._wrong,
            "deliver": self._delivered,
        }
        for at, (kind, *what) in enumerate(self._record.lines):
            if kind in handlers and what[0] == self._topic:
                handlers[kind](at, *what[1:])
        self._check_causes()
        if self._record.lived:
            for (topic, by), number in self._facts.last.items():
                if topic == self._topic and by != self._record.name:
                    self._missing(by, *self._reached(by, number + 1))

    def _ready(self, at: int, when: float) -> None:
        self._ready_at = self._ready_at or (at, when)
        if self._gap_at >= 0 and self._again_at is None:
            self._again_at = when

    def _wrong(self, at: int) -> None:
        self._findings.note("made_up", f"{self._record.name} got something nobody published on {self._topic}")

    def _gap(self, at: int, reason: str, runs: list[list[int]]) -> None:
        self._findings.gaps += 1
        if runs:
            self._named |= self._facts.named(self._topic, runs)
        else:
            self._findings.unnamed += 1
            self._gap_at, self._again_at = at, None

    def _delivered(self, at: int, by: str, number: int, name: list[int]) -> None:
        findings, who = self._findings, f"{self._record.name} on {self._topic}: {by}/{number}"
        findings.delivered += 1
        if (self._topic, by, number) not in self._facts.causes:
            findings.note("made_up", who)
            return
        if (by, number) in self._where:
            findings.note("doubled", who)
            return
        self._where[by, number] = at
        if (by, number) in self._named:
            findings.note("disordered", f"{who} after a gap that names it")
        newest, following, since = self._reached(by, number)
        if number <= newest:
            findings.note("disordered", f"{who} after {newest}")
            return
        self._missing(by, newest, following, since)
        self._newest[by] = number, at

    def _reached(self, by: str, following: int) -> tuple[int, int, int]:
        """Up to which number it has, or need not have, this publisher's; what comes next; and since which line."""
        if by in self._newest:
            newest, at = self._newest[by]
            return newest, following, at
        if self._ready_at is None:
            return following - 1, following, -1
        line, when = self._ready_at
        return min(following, self._facts.first_after(self._topic, by, when)) - 1, following, line

    def _missing(self, by: str, newest: int, following: int, since: int) -> None:
        for number in range(newest + 1, following):
            if (by, number) in self._named or self._is_excused(by, number, since):
                continue
            told = f"{self._record.name} on {self._topic}: {by}/{number}, and no gap tells of it"
            self._findings.note("lost", told)

    def _is_excused(self, by: str, number: int, since: int) -> bool:
        """By a gap that names nothing and came since that line."""
        if self._gap_at <= since:
            return False
        return self._again_at is None or self._facts.times[self._topic, by][number - 1] <= self._again_at

    def _check_causes(self) -> None:
        for (by, number), at in self._where.items():
            for cause, count in self._facts.causes[self._topic, by, number].items():
                came = self._where.get((cause, count))
                if came is not None and came > at:
                    who = f"{self._record.name} on {self._topic}: {by}/{number} before {cause}/{count}"
                    self._findings.note("before_cause", who)
