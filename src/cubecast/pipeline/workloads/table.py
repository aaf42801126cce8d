"""Subscription tables as they are on disk, and where in them something is wrong."""

from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cubecast.errors import BadInput

# A subscription table in numbers: users and topics counted from 0 in the order of their names.

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


COLUMNS = ("user", "topic")


def read_table(spark: SparkSession, path: Path) -> DataFrame:
    """What `cubecast workload` wrote, or a table like it. → user, topic"""
    if not path.exists():
        raise BadInput(f"there is no table {path}")
    try:
        raw = spark.read.parquet(str(path))
    except PySparkException as error:
        raise BadInput(f"{path} cannot be read as parquet: {str(error).splitlines()[0]}") from None
    missing = [name for name in COLUMNS if name not in raw.columns]
    if missing:
        raise BadInput(f"{path} has no column {' and no column '.join(missing)}; it has {', '.join(raw.columns)}")
    lacking = F.col("user").isNull() | F.col("topic").isNull()
    if place := row_where(raw, lacking):
        raise BadInput(f"{place}: a subscription has a user and a topic, this row lacks one")
    return raw.select(*(F.col(name).cast("string").alias(name) for name in COLUMNS))


def row_where(raw: DataFrame, condition: Column) -> str | None:
    """File and row, counted from 1, of the first row of Parquet files that is so; None if there is none."""
    place = raw.where(condition).select(
        F.col("_metadata.file_path").alias("file"), F.col("_metadata.row_index").alias("row")
    )
    found = place.orderBy("file", "row").limit(1).collect()
    return f"{local_path(found[0].file)}, row {found[0].row + 1}" if found else None


def local_path(address: str) -> str:
    """As a person names the file."""
    return unquote(urlsplit(address).path) if address.startswith("file:") else address


def require_members(spark: SparkSession, path: Path, numbered: Numbered, least: int) -> None:
    """Every topic has so many subscribers, or BadInput says which one has not and where it stands."""
    sizes = numbered.topics.select("name", "members").orderBy("members", "name").limit(1).collect()
    if not sizes:
        raise BadInput(f"{path} is empty: nobody subscribes to anything")
    name, members = sizes[0]
    if members < least:
        place = row_where(spark.read.parquet(str(path)), F.col("topic").cast("string") == name)
        wanted = "an overlay has two members or more" if least == 2 else f"a view of {least - 1} cannot be met"
        raise BadInput(
            f"{place}: topic {name} has {members} subscriber{'s' * (members != 1)}: {wanted}; "
            f"`cubecast workload universe --least {least}` leaves smaller topics out"
        )
