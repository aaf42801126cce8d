"""What a check answers: VALID, VIOLATED with the smallest witness, or UNKNOWN with the reason. Never silence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import sqrt
from typing import Any, Final

from cubecast.ids import Incarnation, MessageId, NodeId, Topic
from cubecast.trace.schema import PROPERTIES, WELL_FORMED

MOST_WITNESSES: Final = 10
_DEVIATIONS: Final = 1.96  # of 95 %
_RANK: Final = {name: rank for rank, name in enumerate((*WELL_FORMED, *PROPERTIES))}


class Verdict(StrEnum):
    VALID = "VALID"
    VIOLATED = "VIOLATED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise and the rows that show it."""

    promise: str
    node: NodeId
    incarnation: Incarnation
    seq: int
    reason: str
    topic: Topic | None = None
    ordinal: int | None = None
    """Which of this log's subscriptions to the topic, from 0; null when no subscription is concerned."""
    message: MessageId | None = None
    other: MessageId | None = None
    """The missing or late dependency, or whatever else the message stands against."""
    other_seq: int | None = None
    certain: bool = True
    """False when rows that are missing from the trace might still explain it."""

    @property
    def size(self) -> tuple[int, NodeId, Incarnation, int]:
        """How much of a node's history one must read to see it: smaller witnesses are shown first."""
        return self.seq, self.node, self.incarnation, _RANK[self.promise]

    def to_json(self, run: str) -> dict[str, Any]:
        return {
            "run": run,
            "property": self.promise,
            "node": self.node,
            "incarnation": self.incarnation,
            "topic": self.topic,
            "subscription": self.ordinal,
            "seq": self.seq,
            "message": _id_json(self.message),
            "other": _id_json(self.other),
            "other_seq": self.other_seq,
            "reason": self.reason,
        }


def _id_json(message: MessageId | None) -> list[int] | None:
    return None if message is None else list(message)


@dataclass(frozen=True)
class Rate:
    """So many of so many; what is missing would have had to be there if the property were certain."""

    kept: int
    of: int

    @property
    def rate(self) -> float | None:
        return self.kept / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's, of 95 %: right for rates near 1 as well."""
        if not self.of:
            return None
        share, square = self.kept / self.of, _DEVIATIONS**2
        middle = share + square / (2 * self.of)
        reach = _DEVIATIONS * sqrt(share * (1 - share) / self.of + square / (4 * self.of**2))
        whole = 1 + square / self.of
        return max(0.0, (middle - reach) / whole), min(1.0, (middle + reach) / whole)

    def __add__(self, other: "Rate") -> "Rate":
        return Rate(self.kept + other.kept, self.of + other.of)

    def to_json(self) -> dict[str, object]:
        return {"kept": self.kept, "of": self.of, "rate": self.rate, "interval": self.interval}


@dataclass(frozen=True)
class Report:
    """The verdict on one trace, property by property."""

    run: str
    verdicts: Mapping[str, Verdict]
    violations: Sequence[Violation]
    """Certain ones only, smallest first."""
    deliveries: int = 0
    messages: int = 0
    unknown_because: Sequence[str] = field(default=())
    measured: Mapping[str, Rate] = field(default_factory=dict)
    """What is likely and not promised: how often it held."""
    premises: Mapping[str, int] = field(default_factory=dict)
    """How often each had occasion to be broken, where that can be never."""

    @property
    def vacuous(self) -> list[str]:
        """Valid, and nothing was put to the test."""
        return [name for name, count in self.premises.items() if not count and self.verdicts[name] is Verdict.VALID]

    @property
    def verdict(self) -> Verdict:
        found = set(self.verdicts.values())
        return next((v for v in (Verdict.VIOLATED, Verdict.UNKNOWN) if v in found), Verdict.VALID)

    @property
    def witnesses(self) -> Sequence[Violation]:
        return self.violations[:MOST_WITNESSES]

    def violated(self) -> set[str]:
        return {name for name, verdict in self.verdicts.items() if verdict is Verdict.VIOLATED}

    def to_json(self) -> dict[str, Any]:
        count = dict.fromkeys(self.verdicts, 0)
        for violation in self.violations:
            count[violation.promise] += 1
        return {
            "verdict": str(self.verdict),
            "properties": {n: {"verdict": str(v), "violations": count[n]} for n, v in self.verdicts.items()},
            "witnesses": [violation.to_json(self.run) for violation in self.witnesses],
            "deliveries": self.deliveries,
            "messages": self.messages,
            "runs": 1,
            "measured": {name: rate.to_json() for name, rate in self.measured.items()},
            "premises": dict(self.premises),
            "vacuous": self.vacuous,
            "unknown_because": list(self.unknown_because),
        }
