"""Do users who share one topic share others? Pearson's correlation of topics, users as observations.

Topics are columns of zeros and ones over all n users. With s subscribers of each and c of both, the correlation is
(n·c − s_a·s_b) / √(s_a(n − s_a)·s_b(n − s_b)). Only pairs with c > 0 need a row. The others have
−f_a·f_b with f = √(s / (n − s)), so the mean over *all* pairs needs no more than sums.
"""

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cubecast.pipeline.workloads.chance import draw


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
    factor = F.col("size") / F.col("spread")
    (alone,) = (
        _sizes(subscriptions, users)
        .agg(F.count("*").alias("topics"), F.sum(factor).alias("once"), F.sum(factor * factor).alias("twice"))
        .collect()
    )
    (shared,) = (
        _sharing_pairs(subscriptions, users)
        .agg(F.count("*").alias("pairs"), F.sum("correlation").alias("total"), F.sum("apart").alias("apart"))
        .collect()
    )
    pairs = alone.topics * (alone.topics - 1) // 2
    all_apart = ((alone.once or 0.0) ** 2 - (alone.twice or 0.0)) / 2
    total = (shared.total or 0.0) - (all_apart - (shared.apart or 0.0))
    return Correlation(
        alone.topics,
        pairs,
        shared.pairs,
        total / pairs if pairs else None,
        shared.total / shared.pairs if shared.pairs else None,
    )


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
