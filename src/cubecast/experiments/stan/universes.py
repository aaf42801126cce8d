"""Who subscribes to what in §3.3: the logs are not to be had, so universes are drawn that have their shape.

*Grid*: the synthetic universe of Figure 3.7. Processes and the points topics are about lie in a unit square; a process
subscribes to what lies within its radius. The thesis prints no parameters; these give its 25 links.

*Matched*: as many processes and topics as Table 3.1 prints, by the model of `pipeline.workloads.matched`, which is
`cubecast workload matched` too. Degrees of the real logs are not published: shapes can be compared, levels cannot.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cubecast.errors import BadInput
from cubecast.pipeline.workloads.synthetic import LIKE, Shape, members_of_topics, power_law


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


SHAPES = {
    "W8": Shape(1_381, 576, *LIKE["wikipedia"]),
    "W7": Shape(5_957, 3_858, *LIKE["wikipedia"]),
    "L8": Shape(4_689, 253, *LIKE["livejournal"]),
}


def matched(seed: int, shape: Shape) -> Universe:
    return universe(shape.processes, list(members_of_topics(shape, seed, 0, shape.topics)))
