"""`cubecast reproduce brisa`: Figures 4.3 and 4.7 to 4.19, Tables 4.1 to 4.3."""

from collections.abc import Hashable, Sequence
from typing import Any

from cubecast.experiments.brisa import churn, comparison, structure
from cubecast.experiments.brisa.scene import INTERVAL
from cubecast.experiments.ledger import Explanation, Finding, Ledger, claims_of
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.experiments.reproduction import Effort, Reproduction

NODES, QUICK_NODES = 512, 192
RUNS, QUICK_RUNS = 3, 1
QUICK_MINUTES = 3.0
CHURN_INTERVAL = 1000.0
"""Between two messages while 512 processes come and go: a fifth of the paper's rate, on which no row depends."""


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    seeds = range(effort.seed, effort.seed + runs)
    found: list[Finding] = []
    explained: dict[str, Explanation] = {}
    shapes = _structure(effort, runner, seeds, found, explained)
    _churn(effort, runner, seeds, found, explained)
    _compared(effort, runner, seeds, found, explained)
    return Reproduction(
        name="brisa",
        title="HyParView and Brisa: thesis of M. Matos, chapter 4",
        reading=(
            "corrected rules unless a line says otherwise; cluster 0.1–0.3 ms and Exp(1 ms) per packet, PlanetLab "
            "log-normal per pair, median 40 ms; expansion 1 for Table 4.1 and Figure 4.3, otherwise 2"
        ),
        runs=runs,
        seed=effort.seed,
        ledger=Ledger(found, explained, claims_of("brisa")),
        series=structure.series(shapes),
    )


Found = list[Finding]
Explained = dict[str, Explanation]


def _structure(effort: Effort, runner: Runner, seeds: range, found: Found, explained: Explained) -> Any:
    given = structure.points(QUICK_NODES if effort.quick else NODES, seeds, quick=effort.quick)
    floods = _by(runner(structure.flood, given["flood"]), given["flood"], lambda one: (one["view"], one["expansion"]))
    shapes = _by(runner(structure.shape, given["shape"]), given["shape"], lambda one: one["name"])
    forests = _by(
        runner(structure.several, given["several"]),
        given["several"],
        lambda one: (one["trees"], one["network"], one["expansion"], one["sources"]),
    )
    found += structure.findings(floods, shapes, forests)
    explained |= structure.explanations(forests)
    return shapes


def _churn(effort: Effort, runner: Runner, seeds: range, found: Found, explained: Explained) -> None:
    sizes, minutes = ((128,), QUICK_MINUTES) if effort.quick else ((128, 512), float(churn.MINUTES))
    percents = (3,) if effort.quick else (3, 5)
    given = churn.points(sizes, percents, seeds, minutes, CHURN_INTERVAL)
    compared = [one for one in given if (one["nodes"], one["percent"], one["kind"]) == (128, 3, "tree")]
    tag: list[dict[str, Any]] = [one | {"system": "tag", "settings": {}} for one in compared]
    done = list(runner(churn.run, [*given, *tag]))
    by_row = _by(done[: len(given)], given, lambda one: (one["nodes"], one["percent"], one["kind"]))
    found += [*churn.findings(by_row), *churn.recovery(by_row[128, 3, "tree"], done[len(given) :])]
    explained |= churn.explanations(by_row)
    explained |= churn.recovery_explained(by_row[128, 3, "tree"], done[len(given) :], INTERVAL)


def _compared(effort: Effort, runner: Runner, seeds: range, found: Found, explained: Explained) -> None:
    groups = comparison.points(NODES, seeds, quick=effort.quick)
    listed = [one for group in groups.values() for one in group]
    figures = iter(list(runner(comparison.disseminate, listed)))
    done = {group: {one["name"]: next(figures) for one in points} for group, points in groups.items()}
    built = comparison.construction_points(NODES, seeds[0], quick=effort.quick)
    places = {
        (one["system"], one["network"]): settled
        for one, settled in zip(built, runner(comparison.construct, built), strict=True)
    }
    found += [*comparison.findings(done), *comparison.construction(places)]
    explained |= comparison.explanations(done)


def _by(figures: Any, points: Sequence[Point], key: Any) -> dict[Any, list[Figures]]:
    """The runs of each setting."""
    grouped: dict[Hashable, list[Figures]] = {}
    for point, one in zip(points, figures, strict=True):
        grouped.setdefault(key(point), []).append(one)
    return grouped
