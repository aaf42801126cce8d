"""Made-up subscriptions with the shape of real ones: the grid model of StaN §3.3.2.

Users and topics' identifiers lie at random on a square. A topic has several identifiers, their number a power law; a
user has an interest radius, a power law too, and subscribes to the topics with an identifier within it. Neighbours like
the same topics, which correlates subscriptions. The square has side 1 and a very fine grid: 2^53 lines each way.

Both sides are put into square cells and joined on the cell, so a user is compared with the identifiers near it, not
with all of them: the work grows with the number of subscriptions that come out.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cubecast.errors import BadInput
from cubecast.pipeline.workloads.chance import draw

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
