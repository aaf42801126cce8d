"""How well each finding is known: a 95 % interval from the runs it rests on, by the bootstrap.

An experiment is evaluated again and again over runs drawn with replacement from those that were made; nothing is
simulated for it. The runner that does this hands every point the figures of another seed of the same point, the same
one wherever a seed occurs, so that what was paired stays paired. A finding that rests on one run has no interval. The
points of its curves have intervals in the same way.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from cubecast.experiments.parallel import CPU_SECONDS, Figures, Point, PointFunction, Runner, Timed, name_of
from cubecast.experiments.reproduction import Effort, Experiment

EXPERIMENTS = "cubecast.experiments."
SAMPLES = 100
TAIL = 0.025

Interval: TypeAlias = tuple[float, float]
Setting: TypeAlias = tuple[str, str]


@dataclass
class _Runs:
    """Every run that was made, by setting and seed."""

    figures: dict[Setting, dict[int, Figures]] = field(default_factory=dict)
    cpu_seconds: Counter[str] = field(default_factory=Counter)
    """By the function that was run."""

    def remembering(self, runner: Runner) -> Runner:
        def run(function: PointFunction, points: Sequence[Point]) -> Iterator[Figures]:
            for point, given in zip(points, runner(Timed(function), points), strict=True):
                setting, seed = _split(function, point)
                figures = {name: value for name, value in given.items() if name != CPU_SECONDS}
                self.cpu_seconds[name_of(function).removeprefix(EXPERIMENTS)] += given[CPU_SECONDS]
                self.figures.setdefault(setting, {})[seed] = figures
                yield figures

        return run

    def drawn(self, rng: Random) -> Runner:
        """For each seed another one, by its place among the seeds of the setting."""
        places: dict[int, float] = {}

        def run(function: PointFunction, points: Sequence[Point]) -> Iterator[Figures]:
            for point in points:
                setting, seed = _split(function, point)
                runs = self.figures[setting]
                place = places.setdefault(seed, rng.random())
                yield list(runs.values())[int(place * len(runs))]

        return run


def with_intervals(experiment: Experiment, effort: Effort, runner: Runner) -> dict[str, Any]:
    """The experiment's report, with `interval` in each row of its ledger: low and high, or None; and what it cost.

    `bands` are the intervals of its curves: by figure and curve, one for each of its points.
    """
    runs = _Runs()
    report = experiment(effort, runs.remembering(runner)).to_json()
    report["cpu_seconds"] = {name: round(seconds, 2) for name, seconds in runs.cpu_seconds.most_common()}
    samples: dict[str, list[float]] = {row["claim"]: [] for row in report["rows"]}
    drawn: list[Mapping[str, Any]] = []
    if any(len(some) > 1 for some in runs.figures.values()):
        rng = Random(effort.seed)
        for _ in range(SAMPLES):
            again = experiment(effort, runs.drawn(rng))
            for finding in again.ledger.findings:
                samples[finding.claim.name].append(finding.ours)
            drawn.append(again.series)
    for row in report["rows"]:
        row["interval"] = _interval(samples[row["claim"]])
    report["bands"] = {name: _bands(name, curves, drawn) for name, curves in report["series"].items()}
    return report


def _bands(figure: str, curves: Mapping[str, Any], drawn: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The first of the curves is what the others are over."""
    found = {}
    for curve, values in list(curves.items())[1:]:
        points = [[one[figure][curve][place] for one in drawn] for place in range(len(values))]
        between = [None if None in values else _interval(values) for values in points]
        if any(between):
            found[curve] = between
    return found


def _split(function: PointFunction, point: Point) -> tuple[Setting, int]:
    rest = {name: value for name, value in point.items() if name != "seed"}
    described = json.dumps(rest, sort_keys=True, default=repr)
    return (name_of(function), described), point.get("seed", 0)


def _interval(samples: Sequence[float]) -> Interval | None:
    ordered = sorted(samples)
    if not ordered or ordered[0] == ordered[-1]:
        return None
    last = len(ordered) - 1
    return ordered[round(TAIL * last)], ordered[round((1 - TAIL) * last)]
