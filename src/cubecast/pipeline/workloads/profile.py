"""A workload from beginning to end, and in numbers: sizes, degree distributions, correlation of topics."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cubecast.errors import BadInput
from cubecast.pipeline.staging import require_new
from cubecast.pipeline.workloads.chance import draw
from cubecast.pipeline.workloads.powerlaw import (
    PowerLaw,
    degree_histogram,
    fit_power_law,
    subscribers_per_topic,
    subscriptions_per_user,
)
from cubecast.pipeline.workloads.synthetic import GridModel, Shape, matched_subscriptions, synthetic_subscriptions
from cubecast.pipeline.workloads.table import LogFormat, read_log
from cubecast.pipeline.workloads.universe import UniverseRules, median_size, universe, universe_size
from cubecast.pipeline.workloads.zipf import ZipfLoad, zipf_load

# Do users who share one topic share others? Pearson's correlation of topics, users as observations.
#
# Topics are columns of zeros and ones over all n users. With s subscribers of each and c of both, the correlation is
# (n·c − s_a·s_b) / √(s_a(n − s_a)·s_b(n − s_b)). Only pairs with c > 0 need a row. The others have −f_a·f_b with f =
# √(s / (n − s)), so the mean over *all* pairs needs no more than a sum per topic.
#
# Pairs with a topic in common are not independent, so the interval of the mean is that of the jackknife: how much it
# changes when one topic after another is left out.

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


TOPICS_COMPARED = 200


@dataclass(frozen=True)
class Degrees:
    mean: float
    most: int
    law: PowerLaw

    def to_json(self) -> dict[str, Any]:
        return {"mean": self.mean, "max": self.most, "power_law": self.law._asdict() | {"interval": self.law.interval}}


@dataclass(frozen=True)
class Profile:
    users: int
    topics: int
    subscriptions: int
    per_topic: Degrees
    per_user: Degrees
    correlation: Correlation

    def to_json(self) -> dict[str, Any]:
        return {
            "users": self.users,
            "topics": self.topics,
            "subscriptions": self.subscriptions,
            "subscribers_per_topic": self.per_topic.to_json(),
            "subscriptions_per_user": self.per_user.to_json(),
            "correlation": self.correlation._asdict(),
        }


def profile(subscriptions: DataFrame, seed: int, topics_compared: int = TOPICS_COMPARED) -> Profile:
    """`seed` chooses the topics whose correlation is computed, when there are more than `topics_compared`."""
    (size,) = subscriptions.agg(
        F.count_distinct("user").alias("users"), F.count_distinct("topic").alias("topics"), F.count("*").alias("pairs")
    ).collect()
    if not size.pairs:
        raise BadInput("the workload is empty: no topic has enough subscribers, or nobody subscribes to anything")
    return Profile(
        size.users,
        size.topics,
        size.pairs,
        _degrees(subscribers_per_topic(subscriptions)),
        _degrees(subscriptions_per_user(subscriptions)),
        correlation_summary(sample_topics(subscriptions, topics_compared, seed), size.users),
    )


def write_subscriptions(subscriptions: DataFrame, directory: Path) -> DataFrame:
    """Write once, read back: later questions do not compute the table again. → user, topic"""
    # The directory is known to be new or empty, and "overwrite" is the only mode that accepts an empty one.
    require_new(directory)
    subscriptions.select("user", "topic").write.mode("overwrite").parquet(str(directory))
    return subscriptions.sparkSession.read.schema("user string, topic string").parquet(str(directory))


def _degrees(degrees: DataFrame) -> Degrees:
    rows = degree_histogram(degrees).collect()
    values, counts = [row["degree"] for row in rows], [row["count"] for row in rows]
    total = sum(value * count for value, count in zip(values, counts, strict=True))
    return Degrees(total / sum(counts), max(values), fit_power_law(values, counts))


# A workload from beginning to end: make it, write it once, profile what was written.


def build_universe(
    spark: SparkSession, log: LogFormat, rules: UniverseRules, seed: int, candidates: int, out: Path
) -> tuple[int, int, Profile]:
    """Of `candidates` universes (seeds `seed`, `seed` + 1, …) the median one, written to `out`.

    Returns its seed, how many rows of the log were left out, and its profile.
    """
    require_new(out)
    pairs = read_log(spark, log)
    attempts = range(seed, seed + candidates)
    kept = seed if candidates <= 1 else median_size(universe_size(pairs.found, rules, one) for one in attempts).seed
    inside = write_subscriptions(universe(pairs.found, rules, kept), out)
    pairs.release()
    if inside.isEmpty():
        shutil.rmtree(out)  # the same place may be asked for again
        raise BadInput(
            f"{log.path}: the universe is empty: of the topics that {rules.seeds} seeds lead to none has "
            f"{rules.least_subscribers} subscribers; lower --least or raise --seeds"
        )
    return kept, pairs.skipped, profile(inside, seed)


def build_synthetic(spark: SparkSession, model: GridModel, seed: int, out: Path) -> Profile:
    require_new(out)
    return profile(write_subscriptions(synthetic_subscriptions(spark, model, seed), out), seed)


def build_matched(spark: SparkSession, shape: Shape, seed: int, out: Path) -> Profile:
    require_new(out)
    return profile(write_subscriptions(matched_subscriptions(spark, shape, seed), out), seed)


def build_publications(spark: SparkSession, load: ZipfLoad, seed: int, out: Path) -> float:
    """The load, written to `out`; returns the share of the busiest topic in it."""
    require_new(out)
    zipf_load(spark, load, seed).write.mode("overwrite").parquet(str(out))
    (most,) = spark.read.parquet(str(out)).groupBy("rank").count().agg(F.max("count").alias("count")).collect()
    return float(most["count"]) / load.publications
