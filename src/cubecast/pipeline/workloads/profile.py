"""A subscription table in numbers: sizes, degree distributions with their power laws, correlation of topics."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cubecast.errors import BadInput
from cubecast.pipeline.outputs import require_new
from cubecast.pipeline.workloads.correlation import Correlation, correlation_summary, sample_topics
from cubecast.pipeline.workloads.degrees import degree_histogram, subscribers_per_topic, subscriptions_per_user
from cubecast.pipeline.workloads.powerlaw import PowerLaw, fit_power_law

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
