"""The claims ledger: what a paper says, what we measured, how far apart, and whether that is within its tolerance.

A claim states its tolerance before anything is run. What lies outside is either explained, in words kept beside the
experiment, or simply differs; nothing is left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

WORST = 3.0
"""A claim's distance counts at most this much in a total: one hopeless claim must not hide the others."""


class Comparison(Enum):
    EXACT = "exact"
    RELATIVE = "relative"  # within a share of the paper's value
    POINTS = "points"  # within so many of its units
    AT_MOST = "at most"
    AT_LEAST = "at least"
    SHAPE = "shape"  # a property of a curve; the experiment says whether it holds


@dataclass(frozen=True)
class Claim:
    name: str
    place: str
    quantity: str
    value: float
    unit: str
    comparison: Comparison
    tolerance: float = 0.0

    def distance(self, ours: float, holds: bool | None) -> float:
        """0 for equal, 1 at the edge of the tolerance; bounds and shapes are 0 when they hold."""
        difference = ours - self.value
        match self.comparison:
            case Comparison.EXACT:
                return 0.0 if difference == 0 else WORST
            case Comparison.RELATIVE:
                return abs(difference) / (self.tolerance * abs(self.value))
            case Comparison.POINTS:
                return abs(difference) / self.tolerance
            case Comparison.AT_MOST:
                return self._beyond(difference)
            case Comparison.AT_LEAST:
                return self._beyond(-difference)
            case Comparison.SHAPE:
                return 0.0 if holds else WORST

    def _beyond(self, excess: float) -> float:
        """How far past a bound, in units of the tolerance where there is one."""
        if excess <= 0:
            return 0.0
        return excess / self.tolerance if self.tolerance else 1 + excess / abs(self.value)

    def allowed(self) -> str:
        """The tolerance in words."""
        match self.comparison:
            case Comparison.RELATIVE:
                return f"± {100 * self.tolerance:g} %"
            case Comparison.POINTS:
                return f"± {self.tolerance:g}"
            case Comparison.AT_MOST | Comparison.AT_LEAST if self.tolerance:
                return f"{self.comparison.value}, ± {self.tolerance:g}"
            case _:
                return str(self.comparison.value)


@dataclass(frozen=True)
class Finding:
    """A claim with what came out. `holds` is asked for shapes only; `note` says more than one number can."""

    claim: Claim
    ours: float
    holds: bool | None = None
    note: str = ""

    @property
    def distance(self) -> float:
        return min(self.claim.distance(self.ours, self.holds), WORST)

    @property
    def within(self) -> bool:
        return self.distance <= 1

    def to_json(self, explanation: str = "") -> dict[str, Any]:
        claim = self.claim
        return {
            "claim": claim.name,
            "place": claim.place,
            "quantity": claim.quantity,
            "paper": claim.value,
            "ours": self.ours,
            "unit": claim.unit,
            "difference": self.ours - claim.value,
            "tolerance": claim.allowed(),
            "distance": self.distance,
            "verdict": "reproduced" if self.within else "explained" if explanation else "differs",
            "note": self.note,
            "explanation": "" if self.within else explanation,
        }


class Ledger:
    """All findings of one experiment under one reading of its paper."""

    def __init__(self, findings: Iterable[Finding], explanations: Mapping[str, str] | None = None) -> None:
        self.findings = list(findings)
        self.explanations = dict(explanations or {})

    @property
    def within(self) -> int:
        return sum(finding.within for finding in self.findings)

    @property
    def distance(self) -> float:
        """Mean distance of a claim; what readings are chosen by."""
        return sum(finding.distance for finding in self.findings) / len(self.findings)

    def rows(self) -> list[dict[str, Any]]:
        return [finding.to_json(self.explanations.get(finding.claim.name, "")) for finding in self.findings]

    def unexplained(self) -> list[str]:
        return [row["claim"] for row in self.rows() if row["verdict"] == "differs"]

    def to_json(self) -> dict[str, Any]:
        return {
            "claims": len(self.findings),
            "within_tolerance": self.within,
            "distance": self.distance,
            "unexplained": self.unexplained(),
            "rows": self.rows(),
        }
