"""Subscription tables as they are on disk, and where in them something is wrong."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cubecast.errors import BadInput
from cubecast.pipeline.workloads.numbered import Numbered

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
