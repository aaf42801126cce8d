"""One run of §5.3, and the runs of all settings, by setting."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from cubecast.experiments.epto.draws import DRIFT, PERIOD, draw
from cubecast.experiments.parallel import Runner
from cubecast.protocol.epidemic.epto_parameters import Clock, EptoParameters, Expired
from cubecast.sim.kernels.epto_broadcast import EptoKernel

Run: TypeAlias = Mapping[str, Any]
CLOCKS = (Clock.GLOBAL.value, Clock.LOGICAL.value)


def setting(
    processes: int,
    clock: str,
    rate: float = 0.5,
    *,
    period: float = PERIOD,
    drift: float = DRIFT,
    churn: float = 0.0,
    threshold: int = 0,
) -> dict[str, Any]:
    """Plain data, so that any scheduler can carry it."""
    return {
        "processes": processes,
        "clock": clock,
        "rate": rate,
        "period": period,
        "drift": drift,
        "churn": churn,
        "threshold": threshold,
    }


def run_point(point: Run) -> dict[str, Any]:
    """A setting and a `seed` in, figures out: the algorithm as printed, ties and acceptance corrected."""
    n = int(point["processes"])
    parameters = EptoParameters(
        period=point["period"],
        clock=Clock(point["clock"]),
        threshold=point["threshold"],
        relays=0,
        expired=Expired.DROP,
        idle=0,
    )
    kernel = EptoKernel(n, parameters)
    rng = np.random.default_rng([int(point["seed"]), n, round(1000 * point["rate"])])
    chance = {name: point[name] for name in ("rate", "period", "drift", "churn")}
    run = kernel.simulate(draw(n, kernel.fanout, parameters.threshold_of(n), rng, **chance))
    plain = point["period"] == PERIOD and point["drift"] == DRIFT and not point["churn"] and not point["threshold"]
    return {
        "setting": {name: value for name, value in point.items() if name != "seed"},
        "events": run.events,
        "clean": float(run.clean.mean()),
        "inversions": run.inversions,
        "delay": float(np.nanmean(run.delays)) if run.delivered.any() else float("nan"),
        "first_reception": float(np.nanmean(run.first_receptions)),
        "last_reception": float(np.mean(np.nanmax(run.first_receptions, axis=0))),
        "copies": run.copies / run.events / n,
        "spontaneous": max(run.spontaneous(p) for p in range(n)) if plain else None,
    }


class Results:
    """The figures of all runs, by setting."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs: defaultdict[tuple[Any, ...], list[Run]] = defaultdict(list)
        for run in runs:
            self._runs[tuple(run["setting"].values())].append(run)

    def each(self, chosen: Mapping[str, Any], measure: Callable[[Run], float]) -> list[float]:
        return [measure(run) for run in self._runs[tuple(chosen.values())]]

    def mean(self, chosen: Mapping[str, Any], measure: Callable[[Run], float]) -> float:
        return float(np.mean(self.each(chosen, measure)))


def run_settings(runner: Runner, settings: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Largest first, so that the cores finish together."""
    ordered = sorted(settings, key=lambda one: (-one["processes"], -one["rate"]))
    return list(runner(run_point, [{**one, "seed": seed} for one in ordered for seed in seeds]))
