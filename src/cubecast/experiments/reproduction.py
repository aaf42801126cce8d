"""Experiments `cubecast reproduce` knows, and what each hands back."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from cubecast.errors import BadInput
from cubecast.experiments.ledger import Ledger, claims_of
from cubecast.experiments.parallel import Runner

REPRODUCTION_SUFFIX = ".reproduction.json"


@dataclass(frozen=True)
class Effort:
    """How much to run. `quick` is what a test command can afford; `runs` None is the paper's number."""

    runs: int | None = None
    quick: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise BadInput(f"runs must be at least 1, not {self.runs}")


@dataclass(frozen=True)
class Reproduction:
    """One experiment done: its ledger, and those of other readings of the same paper beside it."""

    name: str
    title: str
    reading: str
    runs: int
    seed: int
    ledger: Ledger
    beside: Mapping[str, Ledger] = field(default_factory=dict)
    series: Mapping[str, Any] = field(default_factory=dict)
    """Curves for plots, by figure or table: first what they are over, such as the values of `nodes`, then one list over
    those for each "what, which"."""

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": self.name,
            "title": self.title,
            "reading": self.reading,
            "runs": self.runs,
            "seed": self.seed,
            **self.ledger.to_json(),
            "beside": {name: ledger.to_json() for name, ledger in self.beside.items()},
            "series": dict(self.series),
        }


def write_reproduction(report: Mapping[str, Any], directory: Path) -> Path:
    """What `to_json` gave, as a file that `cubecast report` finds."""
    path = directory / f"{report['experiment']}{REPRODUCTION_SUFFIX}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=2) + "\n")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None
    return path


Experiment: TypeAlias = Callable[[Effort, Runner], Reproduction]

# Named by module and imported when asked for: an experiment may need an optional dependency.
EXPERIMENTS: dict[str, str] = {
    "brisa": "cubecast.experiments.brisa.reproduce",
    "causal-aggregation": "cubecast.experiments.causal_aggregation.reproduce",
    "epto": "cubecast.experiments.epto.reproduce",
    "locaps": "cubecast.experiments.locaps.reproduce",
    "stan": "cubecast.experiments.stan.reproduce",
    "vcube-pb": "cubecast.experiments.vcube_pb.reproduce",
    "vcube-ps": "cubecast.experiments.vcube_ps.reproduce",
}


def choose(names: Sequence[str]) -> dict[str, set[str]]:
    """Rows by experiment that experiments, claims or places name; all, if nothing is named."""
    chosen: dict[str, set[str]] = {}
    for name in names or EXPERIMENTS:
        found = {
            experiment: {
                one.name
                for one in claims_of(experiment)
                if name in (experiment, one.name, one.part_of) or name.casefold() == one.place.casefold()
            }
            for experiment in EXPERIMENTS
        }
        if not any(found.values()):
            raise BadInput(
                f"unknown experiment, claim or place {name!r}; there are {', '.join(EXPERIMENTS)}, "
                "and `cubecast reproduce --list` names the claims"
            )
        for experiment, rows in found.items():
            if rows:
                chosen.setdefault(experiment, set()).update(rows)
    return chosen


def only(report: dict[str, Any], rows: set[str]) -> dict[str, Any]:
    """A report of an experiment, cut down to some rows of its ledger."""
    kept = [row for row in report["rows"] if row["claim"] in rows]
    return report | {
        "rows": kept,
        "claims": sum(row["verdict"] != "not run" for row in kept),
        "within_tolerance": sum(row["verdict"] == "reproduced" for row in kept),
        "unexplained": [row["claim"] for row in kept if row["verdict"] == "differs"],
        "not_run": [row["claim"] for row in kept if row["verdict"] == "not run"],
    }


def find_experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise BadInput(f"unknown experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    try:
        experiment: Experiment = import_module(EXPERIMENTS[name]).reproduce
    except ModuleNotFoundError as missing:
        raise BadInput(f"{name} needs {missing.name}, missing here: pip install 'cubecast[kernels]'") from None
    return experiment
