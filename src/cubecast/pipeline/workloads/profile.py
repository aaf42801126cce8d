"""A workload from beginning to end, and in numbers: sizes, degree distributions, correlation of topics."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cubecast.errors import BadInput
from cubecast.pipeline.outputs import require_new
from cubecast.pipeline.workloads.correlation import Correlation, correlation_summary, sample_topics
from cubecast.pipeline.workloads.logs import LogFormat, read_log
from cubecast.pipeline.workloads.matched import Shape, matched_subscriptions
from cubecast.pipeline.workloads.powerlaw import (
    PowerLaw,
    degree_histogram,
    fit_power_law,
    subscribers_per_topic,
    subscriptions_per_user,
)
from cubecast.pipeline.workloads.synthetic import GridModel, synthetic_subscriptions
from cubecast.pipeline.workloads.universe import UniverseRules, median_size, universe, universe_size
from cubecast.pipeline.workloads.zipf import ZipfLoad, zipf_load

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
    found = profile(write_subscriptions(universe(pairs.found, rules, kept), out), seed)
    pairs.release()
    return kept, pairs.skipped, found


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
