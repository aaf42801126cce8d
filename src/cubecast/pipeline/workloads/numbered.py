"""A subscription table in numbers: users and topics counted from 0 in the order of their names."""

from typing import NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_SHIFT = 33
"""Spark's growing ids are a partition's number above as many bits."""


class Numbered(NamedTuple):
    pairs: DataFrame
    """→ topic int, process int"""
    users: DataFrame
    """→ user, process"""
    topics: DataFrame
    """→ name, topic, members"""

    def release(self) -> None:
        self.users.unpersist()
        self.topics.unpersist()


def number_table(subscriptions: DataFrame) -> Numbered:
    users = _counted(subscriptions.select("user").distinct(), "user", "process")
    sizes = subscriptions.groupBy(F.col("topic").alias("name")).agg(F.count("*").alias("members"))
    topics = _counted(sizes, "name", "topic")
    pairs = (
        subscriptions.select("user", F.col("topic").alias("name"))
        .join(topics.select("name", "topic"), on="name", how="inner")
        .join(users, on="user", how="inner")
        .select("topic", "process")
    )
    return Numbered(pairs, users, topics)


def _counted(names: DataFrame, name: str, number: str) -> DataFrame:
    """Sorted in many tasks; what a task counts is moved on by what is in those before it."""
    ordered = names.orderBy(name).select(
        "*", F.spark_partition_id().alias("part"), F.monotonically_increasing_id().alias("place")
    )
    kept = ordered.persist(StorageLevel.MEMORY_AND_DISK)
    counts = {row.part: row["count"] for row in kept.groupBy("part").count().collect()}
    before, total = [], 0
    for part in range(max(counts, default=0) + 1):
        before.append(F.lit(total - (part << _SHIFT)))
        total += counts.get(part, 0)
    moved = F.col("place") + F.element_at(F.array(*before), F.col("part") + 1)
    numbered = kept.select(*names.columns, moved.cast("int").alias(number)).persist(StorageLevel.MEMORY_AND_DISK)
    numbered.count()
    kept.unpersist()
    return numbered
