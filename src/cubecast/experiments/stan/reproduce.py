"""`cubecast reproduce stan`: universes, fewer links with the same overlays, loss, churn, growth, and crossposts."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from cubecast.experiments.claims import claims_of
from cubecast.experiments.ledger import Finding, Ledger
from cubecast.experiments.parallel import Figures, Runner
from cubecast.experiments.reproduction import Effort, Reproduction
from cubecast.experiments.stan import (
    figure_3_7,
    figure_3_8,
    figure_3_9,
    figure_3_10,
    figure_3_11,
    figure_3_12,
    figure_3_13,
    figure_3_14,
    figure_3_15,
    table_3_1,
)
from cubecast.experiments.stan.point import run_settings

RUNS, QUICK_RUNS = 10, 2
CHANGES, QUICK_CHANGES = 3, 1
"""Runs in which processes come and go: long, and alike."""
GRIDS = 20
"""Universes differ in their links by a fifth: a few are not enough."""

Curve: TypeAlias = Sequence[float | None]


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    settings = {
        "fitness": figure_3_10.settings("W8"),
        "loss": figure_3_11.settings("W8"),
        "crossposts": figure_3_15.settings("L8"),
    }
    if not effort.quick:
        settings |= {
            "L8 fitness": [*figure_3_10.settings("L8"), figure_3_10.with_longer_walks("L8")],
            "W7": [figure_3_11.settings("W7")[0]],
        }
    listed = [one for several in settings.values() for one in several]
    found = iter(run_settings(runner, listed, range(effort.seed, effort.seed + runs)))
    done = {name: [next(found) for _ in several] for name, several in settings.items()}
    done["grid"] = run_settings(runner, [figure_3_7.SETTING], range(effort.seed, effort.seed + GRIDS))
    done["abroad"] = [figure_3_7.runs(runner, effort.seed)]
    done["greedy"] = [figure_3_14.runs(runner, "W8", effort.seed)]
    done["table"] = [table_3_1.runs(runner, effort.seed)]
    changes = range(effort.seed, effort.seed + min(runs, QUICK_CHANGES if effort.quick else CHANGES))
    done["growth"] = [figure_3_13.runs(runner, "W8", changes)]
    churn = figure_3_12.runs(runner, "W8", changes)
    losses = dict(zip(figure_3_11.LOSSES, done["loss"], strict=True))
    return Reproduction(
        name="stan",
        title="StaN and CrosspostFlood: thesis of M. Matos, chapter 3",
        reading="TTL 4; one hash of both ids is the weight; universes drawn to the shape of Table 3.1; with pins",
        runs=runs,
        seed=effort.seed,
        ledger=Ledger(
            [*_findings(done, losses), *figure_3_12.findings(churn)],
            figure_3_10.explanations(done["L8 fitness"]) if "L8 fitness" in done else {},
            claims_of("stan"),
        ),
        series=_series(done, losses, churn),
    )


def _series(
    done: dict[str, list[list[Figures]]], losses: dict[float, list[Figures]], churn: dict[int, list[Figures]]
) -> dict[str, dict[str, Curve]]:
    """By round."""

    def curves(named: Mapping[str, Curve]) -> dict[str, Curve]:
        rounds: dict[str, Curve] = {"round": list(range(len(next(iter(named.values())))))}
        return {**rounds, **named}

    def over(runs: list[Figures], what: str = "links") -> list[float]:
        return figure_3_7.evolution([{"links": run[what]} for run in runs])

    return {
        "Figure 3.7": curves(
            figure_3_7.beside_the_papers(over(done["grid"][0]))
            | {"links of a process as on PlanetLab, ours": over(done["abroad"][0])}
        ),
        "Figure 3.11": curves({f"links, {100 * loss:g} % loss": over(runs) for loss, runs in losses.items()}),
        "Figure 3.12a": curves(
            {f"processes, churn ×{factor}": over(runs, "processes") for factor, runs in churn.items()}
        ),
        "Figure 3.12b": curves({f"links, churn ×{factor}": over(runs) for factor, runs in churn.items()}),
        "Figure 3.13": curves({"links, growing": over(done["growth"][0])}),
    }


def _findings(done: dict[str, list[list[Figures]]], losses: dict[float, list[Figures]]) -> list[Finding]:
    wikipedia, livejournal = losses[0.0], done["crossposts"][0]
    by_universe = {"W8": wikipedia, "L8": livejournal} | ({"W7": done["W7"][0]} if "W7" in done else {})
    found = [
        *figure_3_7.findings(done["grid"][0], done["abroad"][0]),
        *figure_3_8.findings(wikipedia, livejournal),
        *figure_3_9.findings(by_universe),
        *figure_3_10.findings("W8", *done["fitness"]),
        *figure_3_11.findings("W8", losses),
        *figure_3_13.findings("W8", done["growth"][0]),
        *figure_3_14.findings(done["greedy"][0], done["fitness"][0]),
        *figure_3_15.findings("L8", livejournal),
        *table_3_1.findings(done["table"][0]),
    ]
    return [*found, *(figure_3_10.findings("L8", *done["L8 fitness"][:2]) if "L8 fitness" in done else ())]
