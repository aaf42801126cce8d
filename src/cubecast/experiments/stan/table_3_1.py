"""Table 3.1: universes grown from seeds in a log of (user, item) pairs: how many topics and processes a seed brings.

The logs are not to be had, so one is drawn that has their shape: a fortieth of Wikipedia's pages and users, with the
sizes, activity and communities of the matched universes. A universe is grown as `cubecast workload universe` does it,
which is a Spark job for logs of any size; `tests/experiments` holds the two against each other. Follows decision 0063.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cubecast.errors import BadInput
from cubecast.experiments.ledger import Finding, claim
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.experiments.stan.universes import SHAPES
from cubecast.pipeline.workloads.synthetic import LEAST_MEMBERS, LIKE, Shape, population, topic_sizes

SEEDS = {"W8": 20, "W7": 100}
PAGES, USERS = 715_710 // 40, 2_015_060 // 40
CANDIDATES = 25
"""Of which the median is taken; the thesis took that of a hundred."""


@dataclass(frozen=True)
class Log:
    """Pairs, each once, sorted by topic; and where the pairs of each user stand."""

    topic: NDArray[np.int64]
    user: NDArray[np.int64]
    first: NDArray[np.int64]
    """Of each topic."""
    by_user: NDArray[np.int64]
    first_of: NDArray[np.int64]
    """Of each user, in `by_user`."""


def log_of(topic: NDArray[np.int64], user: NDArray[np.int64]) -> Log:
    if not len(topic):
        raise BadInput("the log is empty: no user has an item")
    topics, users = int(topic.max()) + 1, int(user.max()) + 1
    pairs = np.unique(topic * users + user)
    topic, user = pairs // users, pairs % users
    by_user = np.argsort(user, kind="stable")
    first = np.searchsorted(topic, np.arange(topics + 1))
    return Log(topic, user, first, by_user, np.searchsorted(user[by_user], np.arange(users + 1)))


def draw_log(rng: Generator, shape: Shape) -> Log:
    """Users are drawn by their activity, most of them from the community of the topic."""
    users = population(rng, shape)
    topic = np.repeat(np.arange(shape.topics), topic_sizes(rng, shape))
    return log_of(topic, users.draw(rng, rng.integers(shape.communities, size=shape.topics)[topic]))


def extract(log: Log, seeds: NDArray[np.int64], rng: Generator, least: int = LEAST_MEMBERS) -> NDArray[np.int64]:
    """Pairs (topic, user) of the universe that grows from these topics."""
    chosen = np.zeros(len(log.first) - 1, np.bool_)
    chosen[seeds] = True
    members = np.zeros(len(log.first_of) - 1, np.bool_)
    members[log.user[chosen[log.topic]]] = True
    first, last = log.first_of[:-1][members], log.first_of[1:][members]
    added = log.by_user[first + (rng.random(len(first)) * (last - first)).astype(np.int64)]
    chosen[log.topic[added]] = True
    inside = chosen[log.topic] & members[log.user]
    topic, user = log.topic[inside], log.user[inside]
    kept = np.bincount(topic, minlength=len(chosen))[topic] >= least
    return np.stack([topic[kept], user[kept]], axis=1)


def run(point: Point) -> Figures:
    """The sizes of the universe whose topics per process are the median."""
    log = draw_log(np.random.default_rng(point["seed"]), Shape(USERS, PAGES, *LIKE["wikipedia"]))
    sizes = []
    for number in range(CANDIDATES):
        rng = np.random.default_rng([point["seed"], number])
        pairs = extract(log, rng.permutation(PAGES)[: point["seeds"]], rng)
        topics, users = (len(np.unique(pairs[:, column])) for column in (0, 1))
        if users:
            sizes.append((topics / users, topics, users))
    _, topics, users = sorted(sizes)[(len(sizes) - 1) // 2]
    return {"pairs": len(log.topic), "topics": topics / point["seeds"], "users": users / point["seeds"]}


def runs(runner: Runner, seed: int) -> list[Figures]:
    return list(runner(run, [{"seeds": seeds, "seed": seed} for seeds in SEEDS.values()]))


def findings(done: Sequence[Figures]) -> Iterator[Finding]:
    for (name, seeds), its in zip(SEEDS.items(), done, strict=True):
        printed = f"{SHAPES[name].topics} topics, {SHAPES[name].processes} processes from {seeds} seeds"
        note = f"{name}: {printed}; drawn from a log of {its['pairs']:,} pairs"
        yield Finding(claim(f"ST-T31-{name}-topics"), its["topics"], note=note)
        yield Finding(claim(f"ST-T31-{name}-processes"), its["users"], note=note)
