"""From findings to verdicts: VALID, VIOLATED with its smallest witnesses, or UNKNOWN with the reason."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cubecast.pipeline.findings import batch_of
from cubecast.pipeline.frames import VERDICT, WITNESS
from cubecast.pipeline.staging import CHECKABLE, Run
from cubecast.trace.schema import NEEDS_VERSION

VALID, VIOLATED, UNKNOWN = "VALID", "VIOLATED", "UNKNOWN"
REFUSED = "REFUSED"
"""Not a verdict: the run is bad input."""
INHERITS = {"P8": ("K2",), "P10": ("P1", "P2", "P3", "P4")}
"""Promises that contain others."""
MOST_WITNESSES = 10


def worst(verdicts: Iterable[str]) -> str:
    found = set(verdicts)
    return next((verdict for verdict in (VIOLATED, UNKNOWN) if verdict in found), VALID)


@dataclass(frozen=True)
class PropertyVerdict:
    verdict: str
    violations: int = 0


@dataclass(frozen=True)
class RunVerdict:
    """What was decided about one run."""

    run: Run
    properties: dict[str, PropertyVerdict]
    witnesses: tuple[dict[str, Any], ...] = ()
    """Findings that count, smallest first."""
    deliveries: int = 0
    messages: int = 0
    bad_rows: int = 0
    unknown_because: tuple[str, ...] = ()
    measured: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What is likely and not promised: so many of so many."""
    premises: dict[str, int] = field(default_factory=dict)
    """How often each property had occasion to be broken, where that can be never."""
    refused: str | None = None
    """Why it is no trace that could be judged: then there is no verdict on it, and the other runs have theirs."""

    @property
    def verdict(self) -> str:
        return REFUSED if self.refused is not None else worst(one.verdict for one in self.properties.values())


def refuse_run(run: Run, reason: str) -> RunVerdict:
    return RunVerdict(run, {}, refused=reason)


def judge_run(
    run: Run, wanted: Sequence[str], findings: list[dict[str, Any]], incomplete: list[str], **counts: int
) -> RunVerdict:
    """Every wanted property of a run. In an incomplete trace only what no missing row could undo counts."""
    counting = [finding for finding in findings if finding["certain"] or not incomplete]
    reasons = list(incomplete)
    if any(finding["property"] == "K0" for finding in counting):
        reasons.append("the trace contradicts itself")
    undecided = [name for name in wanted if NEEDS_VERSION.get(name, 0) > run.version]
    properties, witnesses = {}, []
    for name in wanted:
        names = (name, *INHERITS.get(name, ()))
        mine = [finding | {"property": name} for finding in counting if finding["property"] in names]
        violations = sum(finding["weight"] for finding in mine)
        verdict = VIOLATED if mine else UNKNOWN if reasons or name in undecided else VALID
        properties[name] = PropertyVerdict(verdict, violations)
        witnesses += mine
    witnesses.sort(key=_size)
    reasons += [f"traces of version {run.version} do not tell what {name} needs" for name in undecided]
    judged = RunVerdict(run, properties, tuple(witnesses), unknown_because=tuple(reasons))
    return replace(judged, **counts)  # type: ignore[arg-type] # numbers, of which there are three


def _size(finding: dict[str, Any]) -> tuple[int, int, int, int]:
    """How much of a node's history one must read to see it."""
    return finding["seq"], finding["node"], finding["incarnation"], CHECKABLE.index(finding["property"])


@dataclass(frozen=True)
class Verification:
    """The verdict on any number of runs."""

    runs: tuple[RunVerdict, ...]
    wall_seconds: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    """Where the time went."""

    @property
    def verdict(self) -> str:
        """On the runs that could be judged."""
        return worst(run.verdict for run in self.runs)

    @property
    def refused(self) -> list[str]:
        """Why the others could not: each reason names its file."""
        return [run.refused for run in self.runs if run.refused is not None]

    @property
    def properties(self) -> dict[str, PropertyVerdict]:
        """Over all runs: the worst verdict and all violations of each property."""
        joined = {}
        for name in CHECKABLE:
            found = [run.properties[name] for run in self.runs if name in run.properties]
            if found:
                violations = sum(one.violations for one in found)
                joined[name] = PropertyVerdict(worst(one.verdict for one in found), violations)
        return joined

    @property
    def measured(self) -> dict[str, dict[str, Any]]:
        """Over all runs: how often what is likely held."""
        names = dict.fromkeys(name for run in self.runs for name in run.measured)
        both = {name: [run.measured[name] for run in self.runs if name in run.measured] for name in names}
        return {name: _rate(sum(kept for kept, _ in of), sum(all_ for _, all_ in of)) for name, of in both.items()}

    @property
    def premises(self) -> dict[str, int]:
        """Over all runs."""
        joined: dict[str, int] = {}
        for run in self.runs:
            for name, count in run.premises.items():
                joined[name] = joined.get(name, 0) + count
        return joined

    @property
    def vacuous(self) -> list[str]:
        """Valid, and nothing was put to the test."""
        valid = {name for name, one in self.properties.items() if one.verdict == VALID}
        return [name for name, count in self.premises.items() if not count and name in valid]

    @property
    def witnesses(self) -> list[dict[str, Any]]:
        every = [(finding, run.run.name) for run in self.runs for finding in run.witnesses]
        every.sort(key=lambda pair: _size(pair[0]))
        return [_witness_json(finding, run) for finding, run in every[:MOST_WITNESSES]]

    @property
    def unknown_because(self) -> list[str]:
        return [f"{run.run.name}: {reason}" for run in self.runs for reason in run.unknown_because]

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "properties": {
                name: {"verdict": one.verdict, "violations": one.violations} for name, one in self.properties.items()
            },
            "witnesses": self.witnesses,
            "deliveries": sum(run.deliveries for run in self.runs),
            "messages": sum(run.messages for run in self.runs),
            "runs": len(self.runs) - len(self.refused),
            "measured": self.measured,
            "refused": self.refused,
            "wall_seconds": round(self.wall_seconds, 3),
            "seconds": {stage: round(seconds, 3) for stage, seconds in self.seconds.items()},
            "bad_rows": sum(run.bad_rows for run in self.runs),
            "premises": self.premises,
            "vacuous": self.vacuous,
            "unknown_because": self.unknown_because[:MOST_WITNESSES],
        }

    def write(self, directory: Path) -> None:
        """`witnesses`, every finding that counts, and `verdicts`, a row per run and property, as Parquet below here."""
        for name, table in self.tables().items():
            (directory / name).mkdir(parents=True)
            pq.write_table(table, directory / name / "part-00000.parquet")

    def tables(self) -> dict[str, pa.Table]:
        """`witnesses`, every finding that counts, and `verdicts`, a row per run and property."""
        told = (("witnesses", self._findings(), WITNESS), ("verdicts", self._verdicts(), VERDICT))
        return {name: pa.Table.from_batches([batch_of(rows, schema)]) for name, rows, schema in told}

    def _findings(self) -> list[dict[str, Any]]:
        return [_where(run) | finding for run in self.runs for finding in run.witnesses]

    def _verdicts(self) -> list[dict[str, Any]]:
        return [
            _where(run) | {"property": name, "verdict": one.verdict, "violations": one.violations}
            for run in self.runs
            for name, one in run.properties.items()
        ]


def _rate(kept: int, of: int) -> dict[str, Any]:
    """With Wilson's 95 % interval."""
    if not of:
        return {"kept": 0, "of": 0, "rate": None, "interval": None}
    share, z = kept / of, 1.96
    middle, reach = share + z * z / (2 * of), z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    interval = (max(0.0, (middle - reach) / (1 + z * z / of)), min(1.0, (middle + reach) / (1 + z * z / of)))
    return {"kept": kept, "of": of, "rate": share, "interval": interval}


def _where(run: RunVerdict) -> dict[str, Any]:
    return {"run": run.run.name, "directory": run.run.directory}


def _witness_json(finding: dict[str, Any], run: str) -> dict[str, Any]:
    return {
        "run": run,
        "property": finding["property"],
        "node": finding["node"],
        "incarnation": finding["incarnation"],
        "topic": finding["topic"],
        "subscription": finding["ordinal"],
        "seq": finding["seq"],
        "message": _id_json(finding, ""),
        "other": _id_json(finding, "other_"),
        "other_seq": finding["other_seq"],
        "reason": finding["reason"],
    }


def _id_json(finding: dict[str, Any], prefix: str) -> list[int] | None:
    if finding[f"{prefix}counter"] is None:
        return None
    return [finding[f"{prefix}{name}"] for name in ("source", "source_incarnation", "counter")]
