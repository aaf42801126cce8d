"""Who subscribes to what in §3.3: the logs are not to be had, so universes are drawn that have their shape.

*Grid*: the synthetic universe of Figure 3.7. Processes and the points topics are about lie in a unit square; a process
subscribes to what lies within its radius. The thesis prints no parameters; these give its 25 links.

*Matched*: as many processes and topics as Table 3.1 prints. Topic sizes and the activity of processes follow power
laws, and a share of a topic's members come from one community, which makes interests correlate. Degrees of the real
logs are not published: shapes can be compared, levels cannot.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cubecast.errors import BadInput

Floats = NDArray[np.float64]
LEAST_MEMBERS = 30


@dataclass(frozen=True)
class Universe:
    """Topic by topic its members, ascending: those of topic t are `members[first[t]:first[t + 1]]`."""

    processes: int
    first: NDArray[np.int64]
    members: NDArray[np.int32]

    @property
    def topics(self) -> int:
        return len(self.first) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.first)

    def of(self, topic: int) -> NDArray[np.int32]:
        return self.members[self.first[topic] : self.first[topic + 1]]


def universe(processes: int, topics: list[NDArray[np.int32]]) -> Universe:
    if not topics:
        raise BadInput("the universe is empty: no topic has enough members")
    first = np.zeros(len(topics) + 1, np.int64)
    first[1:] = np.cumsum([len(one) for one in topics])
    return Universe(processes, first, np.concatenate([np.sort(one) for one in topics]).astype(np.int32))


def power_law(rng: Generator, exponent: float, low: float, high: float, count: int) -> Floats:
    """Drawn with a density of x^-exponent between the two."""
    power = 1.0 - exponent
    drawn: Floats = (low**power + rng.random(count) * (high**power - low**power)) ** (1.0 / power)
    return drawn


def grid(rng: Generator, processes: int = 100, topics: int = 16) -> Universe:
    places = rng.random((processes, 2))
    radius = power_law(rng, 1.5, 0.08, 1.0, processes)
    drawn = []
    for points in power_law(rng, 2.0, 1.0, 9.0, topics).astype(np.int64):
        about = rng.random((points, 2))
        nearest = np.sqrt(((places[:, None, :] - about[None, :, :]) ** 2).sum(axis=2)).min(axis=1)
        members = np.flatnonzero(nearest <= radius)
        if len(members) >= 2:
            drawn.append(members.astype(np.int32))
    return universe(processes, drawn)


@dataclass(frozen=True)
class Shape:
    """Of a matched universe."""

    processes: int
    topics: int
    largest: int
    activity: float
    """Exponent of the power law."""
    most_active: float
    communities: int
    share: float
    """Of a topic's members, those from its community."""


WIKIPEDIA = (600, 1.6, 1000.0, 8, 0.7)
LIVEJOURNAL = (1500, 1.8, 300.0, 20, 0.85)
SHAPES = {
    "W8": Shape(1_381, 576, *WIKIPEDIA),
    "W7": Shape(5_957, 3_858, *WIKIPEDIA),
    "L8": Shape(4_689, 253, *LIVEJOURNAL),
}


def matched(rng: Generator, shape: Shape) -> Universe:
    activity = power_law(rng, shape.activity, 1.0, shape.most_active, shape.processes)
    community = rng.integers(shape.communities, size=shape.processes)
    sizes = power_law(rng, 2.0, LEAST_MEMBERS, shape.largest, shape.topics).astype(np.int64)
    drawn = []
    for size, home in zip(
        np.minimum(sizes, shape.processes).tolist(), rng.integers(shape.communities, size=shape.topics), strict=True
    ):
        keys = rng.exponential(size=shape.processes) / activity  # the smallest are a draw without replacement
        inside = np.flatnonzero(community == home)
        wanted = min(round(shape.share * size), len(inside))
        chosen = inside[np.argsort(keys[inside])[:wanted]]
        keys[chosen] = np.inf
        drawn.append(np.concatenate([chosen, np.argsort(keys)[: size - wanted]]).astype(np.int32))
    return universe(shape.processes, drawn)
