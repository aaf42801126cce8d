"""`cubecast reproduce stan`: universes, fewer links with the same overlays, loss, churn, growth, and crossposts."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from cubecast.experiments.ledger import Finding, Ledger, claims_of
from cubecast.experiments.parallel import Figures, Runner
from cubecast.experiments.reproduction import Effort, Reproduction
from cubecast.experiments.stan import table_3_1
from cubecast.experiments.stan.figures import (
    LOSSES,
    SETTING,
    beside_the_papers,
    evolution,
    explanations,
    findings_of_figure_3_7,
    findings_of_figure_3_8,
    findings_of_figure_3_9,
    findings_of_figure_3_10,
    findings_of_figure_3_11,
    findings_of_figure_3_12,
    findings_of_figure_3_13,
    findings_of_figure_3_14,
    findings_of_figure_3_15,
    runs_of_figure_3_7,
    runs_of_figure_3_12,
    runs_of_figure_3_13,
    runs_of_figure_3_14,
    settings_of_figure_3_10,
    settings_of_figure_3_11,
    settings_of_figure_3_15,
    with_longer_walks,
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
        "fitness": settings_of_figure_3_10("W8"),
        "loss": settings_of_figure_3_11("W8"),
        "crossposts": settings_of_figure_3_15("L8"),
    }
    if not effort.quick:
        settings |= {
            "L8 fitness": [*settings_of_figure_3_10("L8"), with_longer_walks("L8")],
            "W7": [settings_of_figure_3_11("W7")[0]],
        }
    listed = [one for several in settings.values() for one in several]
    found = iter(run_settings(runner, listed, range(effort.seed, effort.seed + runs)))
    done = {name: [next(found) for _ in several] for name, several in settings.items()}
    done["grid"] = run_settings(runner, [SETTING], range(effort.seed, effort.seed + GRIDS))
    done["abroad"] = [runs_of_figure_3_7(runner, effort.seed)]
    done["greedy"] = [runs_of_figure_3_14(runner, "W8", effort.seed)]
    done["table"] = [table_3_1.runs(runner, effort.seed)]
    changes = range(effort.seed, effort.seed + min(runs, QUICK_CHANGES if effort.quick else CHANGES))
    done["growth"] = [runs_of_figure_3_13(runner, "W8", changes)]
    churn = runs_of_figure_3_12(runner, "W8", changes)
    losses = dict(zip(LOSSES, done["loss"], strict=True))
    return Reproduction(
        name="stan",
        title="StaN and CrosspostFlood: thesis of M. Matos, chapter 3",
        reading="TTL 4; one hash of both ids is the weight; universes drawn to the shape of Table 3.1; with pins",
        runs=runs,
        seed=effort.seed,
        ledger=Ledger(
            [*_findings(done, losses), *findings_of_figure_3_12(churn)],
            explanations(done["L8 fitness"]) if "L8 fitness" in done else {},
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
        return evolution([{"links": run[what]} for run in runs])

    return {
        "Figure 3.7": curves(
            beside_the_papers(over(done["grid"][0]))
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
        *findings_of_figure_3_7(done["grid"][0], done["abroad"][0]),
        *findings_of_figure_3_8(wikipedia, livejournal),
        *findings_of_figure_3_9(by_universe),
        *findings_of_figure_3_10("W8", *done["fitness"]),
        *findings_of_figure_3_11("W8", losses),
        *findings_of_figure_3_13("W8", done["growth"][0]),
        *findings_of_figure_3_14(done["greedy"][0], done["fitness"][0]),
        *findings_of_figure_3_15("L8", livejournal),
        *table_3_1.findings(done["table"][0]),
    ]
    return [*found, *(findings_of_figure_3_10("L8", *done["L8 fitness"][:2]) if "L8 fitness" in done else ())]
