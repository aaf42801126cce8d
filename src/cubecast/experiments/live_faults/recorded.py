"""What applications recorded of what they published and got, judged without looking at any journal.

A record belongs to one application, that is, to one life of its process. It is a file of lines, each a JSON array,
written before what it tells of can be seen elsewhere: `start`, `ready` (a topic), `publish` (topic, number, and the
last number of every other application heard on that topic before), `deliver` (topic, application, number), `gap`
(topic, reason), `wrong` (content nobody published), `end` (it lived until everything was at rest).

What is asked of each application and topic:

- nothing twice, the numbers of each other application in order, no effect before its cause, nothing made up;
- from its first message of another application on, every message of it up to the last one that anybody who lived to
  the end has, or that its living publisher published: got, or a gap told between the neighbours of what is missing.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from cubecast.ids import Topic

Line = list[Any]
Message = tuple[Topic, str, int]


@dataclass
class Findings:
    """All but the first three are mistakes."""

    published: int = 0
    delivered: int = 0
    gaps: int = 0
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


def judge(records: Iterable[Record]) -> Findings:
    everybody = list(records)
    causes: dict[Message, dict[str, int]] = {}
    last: dict[tuple[Topic, str], int] = defaultdict(int)
    findings = Findings()
    for record in everybody:
        for kind, *what in record.lines:
            if kind == "publish":
                topic, number, heard = what
                causes[topic, record.name, number] = heard
                findings.published += 1
                if record.lived:
                    last[topic, record.name] = max(last[topic, record.name], number)
            elif kind == "deliver" and record.lived:
                topic, by, number = what
                last[topic, by] = max(last[topic, by], number)
    for record in everybody:
        for topic in sorted(record.topics):
            _Hearing(record, topic, causes, findings).judge(last)
    return findings


class _Hearing:
    """One application's messages on one topic."""

    def __init__(self, record: Record, topic: Topic, causes: dict[Message, dict[str, int]], findings: Findings) -> None:
        self._record, self._topic, self._causes, self._findings = record, topic, causes, findings
        self._where: dict[tuple[str, int], int] = {}
        self._newest: dict[str, tuple[int, int]] = {}
        """Per publisher the last number, and at which line it came."""
        self._gap_at = -1

    def judge(self, last: dict[tuple[Topic, str], int]) -> None:
        own = self._record.name
        for at, (kind, *what) in enumerate(self._record.lines):
            if kind == "gap" and what[0] == self._topic:
                self._findings.gaps += 1
                self._gap_at = at
            elif kind == "wrong" and what[0] == self._topic:
                self._findings.note("made_up", f"{own} got something nobody published on {self._topic}")
            elif kind == "deliver" and what[0] == self._topic:
                self._delivered(at, what[1], what[2])
        self._check_causes()
        if self._record.lived:
            for (topic, by), number in last.items():
                if topic == self._topic and by in self._newest:
                    newest, at = self._newest[by]
                    self._missing(by, newest, number + 1, at)

    def _delivered(self, at: int, by: str, number: int) -> None:
        findings, who = self._findings, f"{self._record.name} on {self._topic}: {by}/{number}"
        findings.delivered += 1
        if (self._topic, by, number) not in self._causes:
            findings.note("made_up", who)
            return
        if (by, number) in self._where:
            findings.note("doubled", who)
            return
        self._where[by, number] = at
        newest, before = self._newest.get(by, (number - 1, at))
        if number < newest:
            findings.note("disordered", f"{who} after {newest}")
            return
        self._missing(by, newest, number, before)
        self._newest[by] = number, at

    def _missing(self, by: str, newest: int, following: int, since: int) -> None:
        if following > newest + 1 and self._gap_at <= since:
            for number in range(newest + 1, following):
                self._findings.note("lost", f"{self._record.name} on {self._topic}: {by}/{number}, and no gap was told")

    def _check_causes(self) -> None:
        for (by, number), at in self._where.items():
            for cause, count in self._causes[self._topic, by, number].items():
                came = self._where.get((cause, count))
                if came is not None and came > at:
                    who = f"{self._record.name} on {self._topic}: {by}/{number} before {cause}/{count}"
                    self._findings.note("before_cause", who)
