"""Do users who share one topic share others? Pearson's correlation of topics, users as observations.

Topics are columns of zeros and ones over all n users. With s subscribers of each and c of both, the correlation is
(n·c − s_a·s_b) / √(s_a(n − s_a)·s_b(n − s_b)). Only pairs with c > 0 need a row. The others have
−f_a·f_b with f = √(s / (n − s)), so the mean over *all* pairs needs no more than a sum per topic.

Pairs with a topic in common are not independent, so the interval of the mean is that of the jackknife: how much it
changes when one topic after another is left out.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cubecast.pipeline.workloads.chance import draw

NORMAL = 1.96
"""Standard errors to either side of a mean, for 95 %."""


class Correlation(NamedTuple):
    topics: int
    """Topics compared; those everybody has vary with nothing and are left out."""
    pairs: int
    """Unordered pairs of them."""
    sharing: int
    """Pairs with at least one common subscriber."""
    mean: float | None
    """Over all pairs; null with fewer than two topics."""
    mean_of_sharing: float | None
    interval: tuple[float, float] | None = None
    """Of the mean, 95 %, were other topics compared; null with fewer than three."""


def sample_topics(subscriptions: DataFrame, most: int, seed: int) -> DataFrame:
    """The subscriptions to `most` topics chosen at random. Pairs grow with the square of topics. → user, topic"""
    topics = subscriptions.select("topic").distinct()
    chosen = topics.orderBy(draw(seed, "correlated topic", F.col("topic")), "topic").limit(most)
    return (
        subscriptions.select("user", "topic")
        .join(F.broadcast(chosen), on="topic", how="left_semi")
        .select("user", "topic")
    )


def topic_correlation(subscriptions: DataFrame, users: int) -> DataFrame:
    """Pairs of topics with a common subscriber; `users` is n, also those who subscribe to none of these topics.

    → topic_a, topic_b (a < b), together, correlation
    """
    return _sharing_pairs(subscriptions, users).select("topic_a", "topic_b", "together", "correlation")


def correlation_summary(subscriptions: DataFrame, users: int) -> Correlation:
    """Means over all pairs of topics, and over those that share a subscriber."""
    factor = (F.col("size") / F.col("spread")).alias("factor")
    factors = {row.topic: row.factor for row in _sizes(subscriptions, users).select("topic", factor).collect()}
    sides = F.explode(F.array("topic_a", "topic_b")).alias("topic")
    shared = (
        _sharing_pairs(subscriptions, users)
        .select(sides, "correlation", "apart")
        .groupBy("topic")
        .agg(F.count("*").alias("pairs"), F.sum("correlation").alias("together"), F.sum("apart").alias("apart"))
        .collect()
    )
    whole = sum(factors.values())
    totals = {topic: -one * (whole - one) for topic, one in factors.items()}
    for row in shared:
        totals[row.topic] += row.together + row.apart
    pairs, sharing = len(totals) * (len(totals) - 1) // 2, sum(row.pairs for row in shared) // 2
    return Correlation(
        len(totals),
        pairs,
        sharing,
        sum(totals.values()) / (2 * pairs) if pairs else None,
        sum(row.together for row in shared) / (2 * sharing) if sharing else None,
        jackknife(list(totals.values())),
    )


def jackknife(totals: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of the mean over pairs, from the sums over the pairs of each."""
    count, whole = len(totals), sum(totals)
    if count < 3:
        return None
    without = [(whole - 2 * one) / ((count - 1) * (count - 2)) for one in totals]
    middle = sum(without) / count
    error = sqrt((count - 1) / count * sum((one - middle) ** 2 for one in without))
    mean = whole / (count * (count - 1))
    return mean - NORMAL * error, mean + NORMAL * error


def _sharing_pairs(subscriptions: DataFrame, users: int) -> DataFrame:
    """→ topic_a, topic_b, together, correlation, apart (minus what the correlation would be if nobody had both)"""
    left = subscriptions.select("user", F.col("topic").alias("topic_a"))
    right = subscriptions.select("user", F.col("topic").alias("topic_b"))
    pairs = (
        left.join(right, on="user", how="inner")
        .where(F.col("topic_a") < F.col("topic_b"))
        .groupBy("topic_a", "topic_b")
        .agg(F.count("*").alias("together"))
    )
    for side in ("a", "b"):
        renamed = {name: f"{name}_{side}" for name in ("topic", "size", "spread")}
        one = _sizes(subscriptions, users).withColumnsRenamed(renamed)
        pairs = pairs.join(one, on=f"topic_{side}", how="inner")
    scale, apart = F.col("spread_a") * F.col("spread_b"), F.col("size_a") * F.col("size_b")
    correlation = (users * F.col("together") - apart) / scale
    return pairs.select(
        "topic_a", "topic_b", "together", correlation.alias("correlation"), (apart / scale).alias("apart")
    )


def _sizes(subscriptions: DataFrame, users: int) -> DataFrame:
    """→ topic, size, spread = √(s(n − s))"""
    return (
        subscriptions.select("user", "topic")
        .groupBy("topic")
        .agg(F.count("*").cast("double").alias("size"))
        .where(F.col("size") < users)
        .select("topic", "size", F.sqrt(F.col("size") * (users - F.col("size"))).alias("spread"))
    )
