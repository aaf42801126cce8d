"""Tables by the name of their format: what Spark has itself, and others where a package brought them."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from cubecast.errors import BadInput

UNKNOWN = "DATA_SOURCE_NOT_FOUND"


def read_table(spark: SparkSession, place: str, kind: str = "parquet") -> DataFrame:
    """`kind` is the name of a format: parquet, iceberg, …; `place` a path, or what the format calls a table."""
    with _told(kind):
        return spark.read.format(kind).load(place)


def write_table(frame: DataFrame, place: str, kind: str = "parquet", mode: str = "append") -> None:
    with _told(kind):
        frame.write.format(kind).mode(mode).save(place)


@contextmanager
def _told(kind: str) -> Iterator[None]:
    """One line instead of a page of Java where the format's package is missing."""
    try:
        yield
    except Exception as error:  # a class of Java's, or of PySpark's, by the kind of session
        if UNKNOWN not in str(error):
            raise
        cure = "start it with --packages and the name of the package that brings it"
        raise BadInput(f"this Spark session knows no format {kind!r}: {cure}") from None
