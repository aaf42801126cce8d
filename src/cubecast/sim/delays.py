"""Propagation delays: what `--propagation` may name, and how a packet's delay is drawn."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from random import Random
from typing import TypeAlias

from cubecast.errors import BadInput
from cubecast.ids import NodeId

Delay: TypeAlias = Callable[[NodeId, NodeId], float]

FORMS = "constant:100, normal:100:25, uniform:10:20, quantiles:0=5,0.5=125,1=600, matrix:FILE.csv or planetlab"

# EpTO's PlanetLab latency is published as mean 157, deviation 119 and the percentiles 5/50/95 = 15/125/366 ticks. Three
# points are ours: the ends, and 75 %, chosen so that linear interpolation has mean 156.95 and deviation 118.98 as well.
PLANETLAB = ((0.0, 4.0), (0.05, 15.0), (0.5, 125.0), (0.75, 220.0), (0.95, 366.0), (1.0, 564.0))


def parse_delay(text: str, rng: Random, size: int) -> Delay:
    """The delay function a specification names, drawing from `rng`; for `size` nodes."""
    name, _, rest = text.partition(":")
    try:
        if name == "planetlab" and not rest:
            return quantiles(PLANETLAB, rng)
        if name == "quantiles":
            pairs = [point.split("=") for point in rest.split(",")]
            return quantiles([(float(share), float(value)) for share, value in pairs], rng)
        if name == "matrix":
            return matrix(_read_matrix(Path(rest)), size)
        numbers = [float(part) for part in rest.split(":")]
        make = {"constant": constant, "normal": normal, "uniform": uniform}[name]
        return make(*numbers, rng)  # type: ignore[operator,no-any-return]
    except (KeyError, ValueError, TypeError):
        raise BadInput(f"propagation {text!r} is not understood; write one of {FORMS}") from None


@dataclass(frozen=True)
class Constant:
    value: float

    def __call__(self, source: NodeId, destination: NodeId) -> float:
        return self.value


def constant(value: float, rng: Random) -> Constant:
    _positive("constant", value)
    return Constant(value)


def normal(mean: float, deviation: float, rng: Random) -> Delay:
    """Normal, drawn again until it is positive."""
    _positive("normal", mean)
    if not 0 <= deviation < inf:
        raise BadInput(f"a normal propagation delay needs a deviation of at least 0, not {deviation}")
    gauss = rng.gauss

    def draw(source: NodeId, destination: NodeId) -> float:
        while (value := gauss(mean, deviation)) <= 0:
            pass
        return value

    return draw


def uniform(low: float, high: float, rng: Random) -> Delay:
    _positive("uniform", low)
    if not low <= high < inf:
        raise BadInput(f"a uniform propagation delay goes from low to high, not from {low} to {high}")
    draw = rng.uniform
    return lambda source, destination: draw(low, high)


def quantiles(points: Sequence[tuple[float, float]], rng: Random) -> Delay:
    """Empirical: monotone linear interpolation between (share, value) points from share 0 to share 1."""
    shares, values = [share for share, _ in points], [value for _, value in points]
    if (
        len(points) < 2
        or shares[0] != 0
        or shares[-1] != 1
        or shares != sorted(set(shares))
        or values != sorted(values)
        or not values[-1] < inf
    ):
        raise BadInput(
            "quantiles go from share 0 to share 1 with growing values, for example quantiles:0=5,0.5=125,1=600"
        )
    _positive("quantiles", values[0])
    random = rng.random

    def draw(source: NodeId, destination: NodeId) -> float:
        share = random()
        k = min(bisect_right(shares, share), len(shares) - 1)
        fraction = (share - shares[k - 1]) / (shares[k] - shares[k - 1])
        return values[k - 1] + fraction * (values[k] - values[k - 1])

    return draw


def matrix(rows: Sequence[Sequence[float]], size: int) -> Delay:
    """One fixed delay per ordered pair of nodes."""
    if len(rows) < size or any(len(row) < size for row in rows):
        raise BadInput(
            f"the latency matrix is {len(rows)} × {min(map(len, rows), default=0)}; {size} nodes need {size} × {size}"
        )
    if any(value <= 0 for i, row in enumerate(rows) for j, value in enumerate(row) if i != j):
        raise BadInput("the latency matrix holds a delay that is not positive")
    return lambda source, destination: rows[source][destination]


def _read_matrix(path: Path) -> list[list[float]]:
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise BadInput(f"the latency matrix {path} cannot be read: {error.strerror}") from None
    return [[float(cell) for cell in line.split(",")] for line in lines if line.strip()]


def _positive(name: str, value: float) -> None:
    if not 0 < value < inf:
        raise BadInput(f"a {name} propagation delay must be positive and finite, not {value}")
