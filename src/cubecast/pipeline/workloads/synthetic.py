"""Made-up subscriptions: with the shape of real ones, by the grid model of StaN §3.3.2; and of a given size."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cubecast.errors import BadInput
from cubecast.pipeline.workloads.chance import draw

# Made-up subscriptions with the shape of real ones: the grid model of StaN §3.3.2.
#
# Users and topics' identifiers lie at random on a square. A topic has several identifiers, their number a power law; a
# user has an interest radius, a power law too, and subscribes to the topics with an identifier within it. Neighbours
# like the same topics, which correlates subscriptions. The square has side 1 and a very fine grid: 2^53 lines each way.
#
# Both sides are put into square cells and joined on the cell, so a user is compared with the identifiers near it, not
# with all of them: the work grows with the number of subscriptions that come out.

MOST_CELLS = 512
"""Per side: more cells than this cost more than the comparisons they save."""


@dataclass(frozen=True)
class GridModel:
    users: int
    topics: int
    points_exponent: float = 2.0
    """Of the number of identifiers per topic."""
    most_points: int = 1000
    radius_exponent: float = 2.5
    least_radius: float = 0.01
    most_radius: float = 0.5

    def __post_init__(self) -> None:
        for name in ("users", "topics", "most_points"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("points_exponent", "radius_exponent"):
            if not getattr(self, name) > 1:
                raise BadInput(f"{name} must be greater than 1, not {getattr(self, name)}")
        if not 0 < self.least_radius <= self.most_radius:
            raise BadInput(f"radii must satisfy 0 < least ≤ most, not {self.least_radius} and {self.most_radius}")

    @property
    def cells(self) -> int:
        """Per side; a cell is about as wide as the smallest interest."""
        return max(1, min(MOST_CELLS, int(1 / self.least_radius)))


def synthetic_subscriptions(spark: SparkSession, model: GridModel, seed: int) -> DataFrame:
    """The same seed gives the same subscriptions however Spark partitions the work. → user, topic"""
    users = user_positions(spark, model, seed)
    points = topic_points(spark, model, seed)
    cell = F.lit(model.cells)
    covered = users.select("*", F.explode(_cells_from_to("x", model.cells)).alias("column")).select(
        "*", F.explode(_cells_from_to("y", model.cells)).alias("row")
    )
    placed = points.select(
        "topic",
        F.col("x").alias("point_x"),
        F.col("y").alias("point_y"),
        F.floor(F.col("x") * cell).alias("column"),
        F.floor(F.col("y") * cell).alias("row"),
    )
    away = (F.col("x") - F.col("point_x")) ** 2 + (F.col("y") - F.col("point_y")) ** 2
    return (
        covered.join(placed, on=["column", "row"], how="inner")
        .where(away <= F.col("radius") ** 2)
        .select("user", "topic")
        .distinct()
        .select(F.concat(F.lit("u"), "user").alias("user"), F.concat(F.lit("t"), "topic").alias("topic"))
    )


def user_positions(spark: SparkSession, model: GridModel, seed: int) -> DataFrame:
    """→ user bigint, x, y, radius"""
    me = F.col("user")
    radius = truncated_pareto(draw(seed, "radius", me), model.radius_exponent, model.least_radius, model.most_radius)
    return (
        spark.range(model.users)
        .withColumnRenamed("id", "user")
        .select(
            "user", draw(seed, "user x", me).alias("x"), draw(seed, "user y", me).alias("y"), radius.alias("radius")
        )
    )


def topic_points(spark: SparkSession, model: GridModel, seed: int) -> DataFrame:
    """Every identifier of every topic. → topic bigint, x, y"""
    me = F.col("topic")
    # A continuous law from 1/2 below the least whole number, rounded, is the discrete one to a good approximation.
    count = F.floor(
        truncated_pareto(draw(seed, "points", me), model.points_exponent, 0.5, model.most_points + 0.499) + 0.5
    )
    return (
        spark.range(model.topics)
        .withColumnRenamed("id", "topic")
        .select("topic", F.explode(F.sequence(F.lit(1).cast("bigint"), count)).alias("point"))
        .select(
            "topic",
            draw(seed, "topic x", me, F.col("point")).alias("x"),
            draw(seed, "topic y", me, F.col("point")).alias("y"),
        )
    )


def truncated_pareto(uniform: Column, exponent: float, least: float, most: float) -> Column:
    """Density ∝ v^−exponent on [least, most], by inversion."""
    power = 1 - exponent
    low, high = least**power, most**power
    return F.pow(low + uniform * (high - low), 1 / power)


def _cells_from_to(axis: str, cells: int) -> Column:
    first = F.floor(F.greatest(F.col(axis) - F.col("radius"), F.lit(0.0)) * cells)
    last = F.floor(F.least(F.col(axis) + F.col("radius"), F.lit(1.0)) * cells)
    return F.sequence(first, F.least(last, F.lit(cells - 1).cast("bigint")))


# Made-up subscriptions of a given size: as many users and topics as a universe of a real log has, and its shape.
#
# The sizes of topics and the activity of users follow power laws. Every subscriber of a topic is drawn by activity,
# with the chance `share` from the topic's community and otherwise from everybody, until there are as many different
# ones as the topic has. That chance is no quota: topics larger than a community would take all of it, so that all of
# its users had the same interests.
#
# Each topic has random numbers of its own: the same seed gives the same table however the topics are divided.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST_MEMBERS = 30
SIZES_EXPONENT = 2.0
_ACTIVITY, _SIZES, _HOMES, _TOPIC = range(4)
"""Purposes of random numbers."""


@dataclass(frozen=True)
class Shape:
    processes: int
    topics: int
    largest: int
    """Topic; the smallest has LEAST_MEMBERS."""
    activity: float
    """Exponent of the power law."""
    most_active: float
    communities: int
    share: float
    """Chance of a subscriber to be from the topic's community."""

    def __post_init__(self) -> None:
        if self.processes < LEAST_MEMBERS:
            raise BadInput(f"topics have {LEAST_MEMBERS} subscribers or more: there must be as many users")
        if self.topics < 1:
            raise BadInput(f"there must be at least 1 topic, not {self.topics}")
        if self.largest < LEAST_MEMBERS:
            raise BadInput(f"the largest topic has {LEAST_MEMBERS} subscribers or more, not {self.largest}")
        if not 1 <= self.communities <= self.processes:
            raise BadInput(f"there can be 1 to {self.processes} communities, not {self.communities}")
        if not self.activity > 1 or not self.most_active >= 1:
            raise BadInput("activity is 1 or more, with an exponent above 1")
        if not 0 <= self.share < 1:
            raise BadInput(f"the share of a community is 0 or more and less than 1, not {self.share}")


LIKE = {"wikipedia": (600, 1.6, 1000.0, 8, 0.7), "livejournal": (1500, 1.8, 300.0, 20, 0.85)}
"""`Shape` but for its size, as Table 3.1's universes are drawn."""


def power_law(rng: Generator, exponent: float, low: float, high: float, count: int) -> Floats:
    """Drawn with a density of x^-exponent between the two."""
    power = 1.0 - exponent
    drawn: Floats = (low**power + rng.random(count) * (high**power - low**power)) ** (1.0 / power)
    return drawn


class Population(NamedTuple):
    """Users are numbered community by community."""

    active: Floats
    """Activity of each user and all before it."""
    below: Floats
    """Activity before each community, and of all."""
    share: float

    def draw(self, rng: Generator, home: Ints) -> Ints:
        """As many users as communities are given, some perhaps more than once."""
        inside = rng.random(len(home)) < self.share
        low, high = np.where(inside, self.below[home], 0.0), np.where(inside, self.below[home + 1], self.active[-1])
        drawn = np.searchsorted(self.active, low + rng.random(len(home)) * (high - low), "right")
        users: Ints = np.minimum(drawn, len(self.active) - 1)
        return users


def population(rng: Generator, shape: Shape) -> Population:
    active = power_law(rng, shape.activity, 1.0, shape.most_active, shape.processes).cumsum()
    edges = np.linspace(0, shape.processes, shape.communities + 1).astype(np.int64)
    return Population(active, np.concatenate([[0.0], active])[edges], shape.share)


def topic_sizes(rng: Generator, shape: Shape) -> Ints:
    sizes = power_law(rng, SIZES_EXPONENT, LEAST_MEMBERS, shape.largest, shape.topics).astype(np.int64)
    return np.minimum(sizes, shape.processes)


def members_of_topics(shape: Shape, seed: int, first: int, last: int) -> Iterator[NDArray[np.int32]]:
    """The subscribers of each of these topics, ascending."""
    users = population(np.random.default_rng([seed, _ACTIVITY]), shape)
    sizes = topic_sizes(np.random.default_rng([seed, _SIZES]), shape)
    homes = np.random.default_rng([seed, _HOMES]).integers(shape.communities, size=shape.topics)
    for topic in range(first, last):
        rng = np.random.default_rng([seed, _TOPIC, topic])
        yield _different(users, rng, int(homes[topic]), int(sizes[topic]))


def _different(users: Population, rng: Generator, home: int, size: int) -> NDArray[np.int32]:
    """The first `size` different ones that are drawn: a draw without replacement."""
    drawn = users.draw(rng, np.full(2 * size, home))
    found, place = np.unique(drawn, return_index=True)
    while len(found) < size:
        drawn = np.concatenate([drawn, users.draw(rng, np.full(len(drawn), home))])
        found, place = np.unique(drawn, return_index=True)
    return np.sort(found[np.argsort(place)[:size]]).astype(np.int32)


def matched_subscriptions(spark: "SparkSession", shape: Shape, seed: int) -> "DataFrame":
    """Names are as long as each other, so that they sort as their numbers do. → user, topic"""

    def subscribe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        users, topics = _names("u", shape.processes), _names("t", shape.topics)
        for numbers in (batch.column(0).to_numpy() for batch in batches if batch.num_rows):
            members = list(members_of_topics(shape, seed, int(numbers[0]), int(numbers[-1]) + 1))
            subscribed = np.repeat(numbers, [len(one) for one in members])
            columns = [users.take(np.concatenate(members)), topics.take(subscribed)]
            yield pa.RecordBatch.from_arrays(columns, ["user", "topic"])

    return spark.range(shape.topics).mapInArrow(subscribe, "user string, topic string").select("user", "topic")


def _names(kind: str, count: int) -> pa.StringArray:
    digits = len(str(count - 1))
    return pa.array([f"{kind}{one:0{digits}}" for one in range(count)])
