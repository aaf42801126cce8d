"""All systems under all conditions, and the table that comes of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from cubecast.errors import BadInput
from cubecast.experiments.comparison.trial import CONDITIONS, DATAGRAMS, run
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort
from cubecast.protocol.families import find

COMPARISON = "systems.comparison.json"
SYSTEMS: Mapping[str, Mapping[str, str]] = {
    "cubecast": {},
    "vcube-ps": {},
    "vcube-pb": {},
    "srpt": {},
    "locaps": {},
    "delta": {},
    "gryphon": {},
    "brisa": {},
    "simple-gossip": {},
    "epto": {},
}
"""With the settings of each; none means as declared."""
RUNS, QUICK_RUNS = 5, 1


@dataclass(frozen=True)
class Size:
    nodes: int
    publishers: int
    messages: int
    size: int


FULL = Size(nodes=64, publishers=16, messages=8, size=50)
QUICK = Size(nodes=16, publishers=4, messages=4, size=50)


def compare(effort: Effort, runner: Runner, systems: Sequence[str] = ()) -> dict[str, Any]:
    """Every system under every condition that fits it: the mean of its runs, and the range they lie in."""
    unknown = [name for name in systems if name not in SYSTEMS]
    if unknown:
        raise BadInput(f"{unknown[0]!r} is not compared; the systems are {', '.join(SYSTEMS)}")
    size = QUICK if effort.quick else FULL
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    cells = [
        (system, condition) for system in systems or SYSTEMS for condition in CONDITIONS if _fits(system, condition)
    ]
    points = [
        {"system": system, "condition": condition, "settings": dict(SYSTEMS[system]), "seed": effort.seed + number}
        | vars(size)
        for system, condition in cells
        for number in range(runs)
    ]
    figures = list(runner(run, points))
    rows = [
        {"system": system, "condition": condition, **_together(figures[place * runs : (place + 1) * runs])}
        for place, (system, condition) in enumerate(cells)
    ]
    return {"size": vars(size), "runs": runs, "seed": effort.seed, "rows": rows}


def _fits(system: str, condition: str) -> bool:
    """Where a system needs channels that keep what they carry, datagrams that get lost are not for it."""
    return condition != DATAGRAMS or not find(system).fifo


def _together(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means; what some run does not have (nobody was told that it joined) is nothing."""
    means: dict[str, Any] = {}
    for name in runs[0]:
        values = [one[name] for one in runs]
        known = None not in values
        means[name] = fmean(values) if known else None
        means[f"{name}_range"] = [min(values), max(values)] if known else None
    return means


def write_comparison(found: Mapping[str, Any], directory: Path) -> Path:
    """As a file that `cubecast report` finds."""
    path = directory / COMPARISON
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2) + "\n")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None
    return path
