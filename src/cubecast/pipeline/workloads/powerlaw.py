"""Discrete power laws P(x) ∝ x^−α for x ≥ x_min, fitted to a histogram of degrees.

Method (Clauset, Shalizi and Newman, SIAM Review 51, 2009): for each candidate x_min the exponent is the maximum of the
exact discrete likelihood, −n·ln ζ(α, x_min) − α·Σ ln x; the x_min kept is the one whose fitted distribution is nearest
to the data by the Kolmogorov–Smirnov distance. The standard error comes from the curvature of the likelihood. No
goodness-of-fit p-value is computed: it needs thousands of refits and says little about workloads this small.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cubecast.errors import BadInput

# How many subscribers topics have, and how many topics users have.


def subscribers_per_topic(subscriptions: DataFrame) -> DataFrame:
    """→ topic, degree"""
    return (
        subscriptions.select("user", "topic")
        .groupBy("topic")
        .agg(F.count("*").alias("degree"))
        .select("topic", "degree")
    )


def subscriptions_per_user(subscriptions: DataFrame) -> DataFrame:
    """→ user, degree"""
    return (
        subscriptions.select("user", "topic").groupBy("user").agg(F.count("*").alias("degree")).select("user", "degree")
    )


def degree_histogram(degrees: DataFrame) -> DataFrame:
    """How many have each degree. → degree, count"""
    return (
        degrees.select("degree")
        .groupBy("degree")
        .agg(F.count("*").alias("count"))
        .select("degree", "count")
        .orderBy("degree")
    )


Array = npt.NDArray[np.float64]

LEAST_TAIL = 50
"""Fewer values than this decide nothing about a tail."""
MOST_CANDIDATES = 60
LOWEST, HIGHEST = 1.001, 12.0


class PowerLaw(NamedTuple):
    exponent: float
    error: float
    """Standard error of the exponent."""
    least: int
    """x_min: where the law begins to hold."""
    tail: int
    """How many values are at or above it."""
    distance: float
    """Kolmogorov–Smirnov distance of data and fit, over the tail."""

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, of the exponent for this x_min: that another one might have been chosen is not in it."""
        return self.exponent - 1.96 * self.error, self.exponent + 1.96 * self.error


def fit_power_law(degrees: Sequence[int], counts: Sequence[int], least: int | None = None) -> PowerLaw:
    """From a histogram: `counts[i]` values equal `degrees[i]` ≥ 1. `least` fixes x_min instead of choosing it."""
    order = np.argsort(np.asarray(degrees))
    values = np.asarray(degrees, dtype=np.float64)[order]
    weights = np.asarray(counts, dtype=np.float64)[order]
    if not values.size or values[0] < 1:
        raise BadInput("a power law is fitted to whole numbers from 1 on, and to at least one of them")
    starts = [least] if least is not None else candidates(values, weights)
    fits = [_fit_tail(values, weights, start) for start in starts]
    return min(fits, key=lambda fit: fit.distance)


def candidates(values: Array, weights: Array) -> list[int]:
    """Observed values that leave a tail worth fitting, thinned evenly if there are many; at least the smallest."""
    at_least = weights[::-1].cumsum()[::-1]
    distinct_left = np.arange(values.size, 0, -1)
    usable = values[(at_least >= LEAST_TAIL) & (distinct_left >= 3)]
    if not usable.size:
        return [int(values[0])]
    picks = np.unique(np.geomspace(1, usable.size, MOST_CANDIDATES).astype(int)) - 1
    return [int(value) for value in usable[picks]]


def _fit_tail(values: Array, weights: Array, least: int) -> PowerLaw:
    inside = values >= least
    values, weights = values[inside], weights[inside]
    total = float(weights.sum())
    if not total:
        raise BadInput(f"no value is {least} or more; there is no tail to fit")
    mean_log = float((weights * np.log(values)).sum()) / total
    exponent = _maximise(mean_log, least)
    fitted = 1 - hurwitz_zeta(exponent, values + 1) / hurwitz_zeta(exponent, np.array([float(least)]))
    distance = float(np.abs(weights.cumsum() / total - fitted).max())
    return PowerLaw(exponent, _standard_error(exponent, least, total), least, round(total), distance)


def _maximise(mean_log: float, least: int) -> float:
    """The likelihood's derivative in α falls monotonically: bisect its zero."""
    low, high = LOWEST, HIGHEST
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if -_log_zeta_slope(middle, least) > mean_log else (low, middle)
    return (low + high) / 2


def _log_zeta(exponent: float, least: int) -> float:
    return math.log(float(hurwitz_zeta(exponent, np.array([float(least)]))[0]))


def _log_zeta_slope(exponent: float, least: int, step: float = 1e-5) -> float:
    return (_log_zeta(exponent + step, least) - _log_zeta(exponent - step, least)) / (2 * step)


def _standard_error(exponent: float, least: int, total: float, step: float = 1e-4) -> float:
    """One over the root of n times the second derivative of ln ζ."""
    around = [_log_zeta(exponent + shift, least) for shift in (-step, 0.0, step)]
    curvature = (around[0] - 2 * around[1] + around[2]) / step**2
    return 1 / math.sqrt(total * curvature) if curvature > 0 else math.inf


def hurwitz_zeta(exponent: float, start: Array) -> Array:
    """Σ (start + k)^−exponent over k ≥ 0, by Euler–Maclaurin after a few direct terms; relative error below 1e−12."""
    direct = 12
    steps = np.arange(direct, dtype=np.float64)
    total: Array = ((start[:, None] + steps) ** -exponent).sum(axis=1)
    end = start + direct
    total += end ** (1 - exponent) / (exponent - 1) + 0.5 * end**-exponent
    rising = exponent
    for order, bernoulli in ((2, 1 / 6), (4, -1 / 30), (6, 1 / 42), (8, -1 / 30)):
        total += bernoulli / math.factorial(order) * rising * end ** (1 - exponent - order)
        rising *= (exponent + order - 1) * (exponent + order)
    return total
