"""The whole chapter: which points to run, and the ledger they make."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeAlias

from cubecast.experiments.causal_aggregation import figure_3_1, figures, tables
from cubecast.experiments.causal_aggregation.figure_3_1 import run_rate_point
from cubecast.experiments.causal_aggregation.point import run_point
from cubecast.experiments.causal_aggregation.readings import Reading
from cubecast.experiments.causal_aggregation.results import Results
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Runner

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
QUICK_SIZES = SIZES[:5]
PARTS = (
    *(tables.table_4_1, tables.table_4_2, tables.table_4_3),
    *(figures.figure_4_3, figures.figure_4_4, figures.figure_4_6, figures.figure_4_7, figures.figure_4_9),
)


Runs: TypeAlias = int | Callable[[int], int]
"""How many of each point: a number, or a function of the size."""


def balanced(runs: int) -> Callable[[int], int]:
    """So many of the largest size, and up to ten times as many of the smaller ones, which vary more and cost less."""
    return lambda nodes: runs * max(1, min(10, SIZES[-1] // nodes))


def points(runs: Runs, seed: int, sizes: Iterable[int], **more: Any) -> list[dict[str, Any]]:
    """Largest first, so that the cores finish together."""
    return [
        {"nodes": nodes, "seed": seed + run, **more}
        for nodes in sorted(sizes, reverse=True)
        for run in range(runs if isinstance(runs, int) else runs(nodes))
    ]


def run_chapter(reading: Reading, runs: Runs, seed: int, runner: Runner, sizes: Sequence[int] = SIZES) -> Results:
    """All runs of chapter 4 under one reading."""
    return Results(runner(run_point, points(runs, seed, sizes, reading=reading.name)))


def run_rates(runs: Runs, seed: int, runner: Runner, sizes: Sequence[int] = SIZES) -> Results:
    """The runs of Figure 3.1, which belongs to no reading."""
    return Results(runner(run_rate_point, points(runs, seed, sizes)))


def all_findings(rates: Results, results: Results) -> list[Finding]:
    """Every claim that the sizes at hand allow to judge, in the chapter's order."""
    return [*figure_3_1.findings(rates), *chain.from_iterable(part(results) for part in PARTS)]
