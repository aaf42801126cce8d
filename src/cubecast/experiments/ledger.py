"""The claims ledger: what a paper says, what we measured, how far apart, and whether that is within its tolerance.

A claim states its tolerance before anything is run. What lies outside is explained, if figures computed in the same run
show the explanation, or it differs; what was not run is in the ledger too and says so.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from math import inf, log
from typing import Any

WORST = 3.0
"""A claim's distance counts at most this much in a total: one hopeless claim must not hide the others."""


class Comparison(Enum):
    EXACT = "exact"
    RELATIVE = "relative"  # within a share of the paper's value
    POINTS = "points"  # within so many of its units
    FACTOR = "factor"  # at most so many times as large or as small
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
    part_of: str = ""
    """The paper's claim, where that has several numbers."""
    remark: str = ""
    """`fitted`: a setting the paper does not state was chosen by this claim. `by construction`: it cannot fail. `set
    after a run`: what counts as reproduced was written down when figures were known."""

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
            case Comparison.FACTOR:
                return abs(log(ours / self.value)) / log(self.tolerance) if ours > 0 else inf
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
            case Comparison.FACTOR:
                return f"factor {self.tolerance:g}"
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


@dataclass(frozen=True)
class Evidence:
    """A figure that an explanation rests on, and between which bounds it has to lie."""

    what: str
    value: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        return self.low <= self.value <= self.high

    def __str__(self) -> str:
        return f"{self.what} {self.value:.4g} ({self.low:g} … {self.high:g})"


@dataclass(frozen=True)
class Explanation:
    """Why a value is not the paper's, with what was computed in the same run to show it.

    It holds for a value between `low` and `high` only, and if all the evidence does; otherwise the claim differs.
    """

    text: str
    low: float
    high: float
    evidence: Sequence[Evidence]

    def holds(self, ours: float) -> bool:
        return self.low <= ours <= self.high and bool(self.evidence) and all(one.holds for one in self.evidence)

    def __str__(self) -> str:
        return f"{self.text} Shown in this run: {'; '.join(map(str, self.evidence))}."


class Ledger:
    """All findings of one experiment under one reading of its paper, and what it has not looked at."""

    def __init__(
        self,
        findings: Iterable[Finding],
        explanations: Mapping[str, Explanation] | None = None,
        claims: Iterable[Claim] = (),
    ) -> None:
        self.findings = list(findings)
        self.explanations = dict(explanations or {})
        found = {finding.claim.name for finding in self.findings}
        self.not_run = [claim for claim in claims if claim.name not in found]

    @property
    def within(self) -> int:
        return sum(finding.within for finding in self.findings)

    @property
    def distance(self) -> float:
        """Mean distance of a claim; what readings are chosen by."""
        return sum(finding.distance for finding in self.findings) / len(self.findings)

    def verdict(self, finding: Finding) -> str:
        if finding.within:
            return "reproduced"
        explanation = self.explanations.get(finding.claim.name)
        return "explained" if explanation and explanation.holds(finding.ours) else "differs"

    def rows(self) -> list[dict[str, Any]]:
        """What was run, then what was not."""
        return [*map(self._row, self.findings), *map(_not_run, self.not_run)]

    def _row(self, finding: Finding) -> dict[str, Any]:
        explanation = self.explanations.get(finding.claim.name)
        return described(finding.claim) | {
            "ours": finding.ours,
            "difference": finding.ours - finding.claim.value,
            "distance": finding.distance,
            "verdict": self.verdict(finding),
            "note": finding.note,
            "explanation": "" if finding.within or not explanation else str(explanation),
        }

    def unexplained(self) -> list[str]:
        return [finding.claim.name for finding in self.findings if self.verdict(finding) == "differs"]

    def to_json(self) -> dict[str, Any]:
        return {
            "claims": len(self.findings),
            "within_tolerance": self.within,
            "distance": self.distance,
            "unexplained": self.unexplained(),
            "not_run": [claim.name for claim in self.not_run],
            "rows": self.rows(),
        }


def described(claim: Claim) -> dict[str, Any]:
    """A row of the ledger as far as the paper decides it."""
    return {
        "claim": claim.name,
        "part_of": claim.part_of or claim.name,
        "place": claim.place,
        "quantity": claim.quantity,
        "paper": claim.value,
        "unit": claim.unit,
        "tolerance": claim.allowed(),
        "remark": claim.remark,
    }


VERDICTS = ("reproduced", "explained", "not run", "differs")
"""From the best to the worst: a claim of several rows has the worst of theirs."""


def verdicts_of_claims(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The papers' claims by name, from the rows of ledgers: reproduced is only what every row of it reproduces."""
    verdicts: dict[str, str] = {}
    for row in rows:
        name = row["part_of"]
        verdicts[name] = max(verdicts.get(name, VERDICTS[0]), row["verdict"], key=VERDICTS.index)
    return verdicts


def _not_run(claim: Claim) -> dict[str, Any]:
    nothing = {"ours": None, "difference": None, "distance": None, "note": "", "explanation": ""}
    return described(claim) | nothing | {"verdict": "not run"}


# The papers' claims from one table, `claims.csv`: what is printed, where, and how far off counts as reproduced.
#
# An experiment asks for a claim by its row and measures; it says nothing of its own about values and tolerances. A row
# is one number; a claim of a paper may have several rows.


@cache
def _table() -> dict[str, tuple[str, Claim]]:
    """Experiment and claim by row, in the table's order."""
    text = files("cubecast.experiments").joinpath("claims.csv").read_text(encoding="utf-8")
    return {row["row"]: (row["experiment"], _claim(row)) for row in csv.DictReader(text.splitlines())}


def _claim(row: dict[str, str]) -> Claim:
    return Claim(
        row["row"],
        row["place"],
        row["quantity"],
        float(row["value"]),
        row["unit"],
        Comparison(row["comparison"]),
        float(row["tolerance"]),
        row["claim"],
        row["remark"],
    )


def claim(row: str) -> Claim:
    return _table()[row][1]


def claims_of(experiment: str) -> list[Claim]:
    return [claim for its, claim in _table().values() if its == experiment]
