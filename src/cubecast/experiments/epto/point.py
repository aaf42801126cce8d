"""One run of §5.3, what chance decides about it, and the runs of all settings, by setting."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cubecast.experiments.parallel import Runner
from cubecast.protocol.epidemic.epto_parameters import Clock, EptoParameters, Expired
from cubecast.sim.kernels.epto_broadcast import EptoKernel
from cubecast.sim.kernels.epto_kernel import Draws, Floats

# The chance of one run of §5.3: PlanetLab latencies, rounds that drift, publications, processes that are replaced.
#
# The latency distribution is printed as a curve; of it the text states the 5th, 50th and 95th percentile, mean (≈ 157)
# and deviation (≈ 119). A monotone curve through them and five points read off the figure has mean 156.6 and deviation
# 119.0 (`tests/experiments/test_epto_experiment.py`).

PERIOD = 125.0
DRIFT = 12 / 125
"""The text: 0.1, "125 ± 12"."""
ROUNDS = 25
"""In which processes publish."""
_SHARES = np.array([0.0, 0.05, 0.25, 0.50, 0.75, 0.95, 0.99, 1.0])
_TICKS = np.array([1.0, 15.0, 62.0, 125.0, 240.0, 366.0, 520.0, 700.0])


def latency_quantile(shares: Floats) -> Floats:
    """Monotone cubic interpolation (Fritsch and Carlson) of the distribution."""
    place = np.clip(np.searchsorted(_SHARES, shares, side="right") - 1, 0, len(_SHARES) - 2)
    width = np.diff(_SHARES)[place]
    x = (shares - _SHARES[place]) / width
    low, high = _TICKS[place], _TICKS[place + 1]
    rise, fall = _SLOPES[place] * width, _SLOPES[place + 1] * width
    quantile: Floats = (
        low * (1 + 2 * x) * (1 - x) ** 2 + rise * x * (1 - x) ** 2 + high * x**2 * (3 - 2 * x) + fall * x**2 * (x - 1)
    )
    return quantile


def _slopes() -> Floats:
    """At the given points: weighted harmonic means of the neighbouring slopes, three-point formulas at both ends."""
    widths, slopes = np.diff(_SHARES), np.diff(_TICKS) / np.diff(_SHARES)
    left, right = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
    inner = (left + right) / (left / slopes[:-1] + right / slopes[1:])
    ends = [
        _end(widths[0], widths[1], slopes[0], slopes[1]),
        _end(widths[-1], widths[-2], slopes[-1], slopes[-2]),
    ]
    return np.array([ends[0], *inner, ends[1]])


def _end(width: float, next_width: float, slope: float, next_slope: float) -> float:
    steep = ((2 * width + next_width) * slope - width * next_slope) / (width + next_width)
    return float(min(max(steep, 0.0), 3 * slope))


_SLOPES = _slopes()


def distinct_peers(processes: int, rounds: int, fanout: int, rng: Generator) -> NDArray[np.int32]:
    """For every process and round, so many different others."""
    peers = np.empty((processes, rounds, fanout), np.int32)
    for me in range(processes):
        chosen = rng.random((rounds, processes - 1)).argsort(axis=1)[:, :fanout]
        peers[me] = chosen + (chosen >= me)
    return peers


def draw(
    processes: int,
    fanout: int,
    threshold: int,
    rng: Generator,
    *,
    rate: float,
    period: float = PERIOD,
    drift: float = DRIFT,
    churn: float = 0.0,
) -> Draws:
    """`churn`: share of the ids that half of the processes have, which is given to new processes every period."""
    rounds = ROUNDS + 2 * threshold + 20 + int(2 * _TICKS[-1] / period)
    publishes = rng.random((processes, rounds)) < rate
    publishes[:, ROUNDS:] = False
    replaced = np.zeros((ROUNDS + threshold if churn else 0, processes), np.bool_)
    half = processes // 2
    for row in replaced:
        row[half + rng.permutation(processes - half)[: round(churn * (processes - half))]] = True
    return Draws(
        phases=rng.random(processes) * period,
        periods=np.maximum(0.0, period * (1 + drift * rng.uniform(-1, 1, (processes, rounds)))),
        publishes=publishes,
        peers=distinct_peers(processes, rounds, fanout, rng),
        latencies=latency_quantile(rng.random((processes, rounds, fanout))),
        replaced=replaced,
    )


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
