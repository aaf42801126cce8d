"""Raw subscription logs (user, item[, time]) as CSV, JSON lines or Parquet."""

from pathlib import Path
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from cubecast.errors import BadInput

FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
COMPRESSED = (".gz", ".bz2", ".zst")


class LogFormat(NamedTuple):
    path: Path
    """A file, or a directory of files."""
    user: str = "user"
    item: str = "item"
    kind: str | None = None
    """csv, json or parquet; otherwise told by the name."""

    def check(self) -> str:
        """The format it is to be read in; BadInput when that is clear to be in vain before anything is read."""
        if not self.path.exists():
            raise BadInput(f"there is no log {self.path}")
        return self.kind or format_of(self.path)


def read_log(spark: SparkSession, log: LogFormat) -> DataFrame:
    """The distinct subscriptions of a log. → user string, topic string

    Rows without user or item say nothing and are dropped. Other columns, such as a time, are not read.
    """
    path, user, item, _ = log
    kind = log.check()
    try:
        found = _pairs(_reader(spark, kind).load(str(path)), path, user, item)
        empty = found.isEmpty()
    except Exception as error:
        # What the JVM throws comes in Py4J's classes, some of them not wrapped by PySpark.
        if isinstance(error, PySparkException) or type(error).__module__.startswith("py4j"):
            raise BadInput(f"{path} cannot be read as {kind}: {_reason(error)}") from None
        raise
    if empty:
        raise BadInput(f"{path} holds no subscription: no row has both {user} and {item}")
    return found.distinct().select("user", "topic")


def _pairs(raw: DataFrame, path: Path, user: str, item: str) -> DataFrame:
    missing = [name for name in (user, item) if name not in raw.columns]
    if missing:
        raise BadInput(f"{path} has no column {' and no column '.join(missing)}; it has {', '.join(raw.columns)}")
    columns = [F.col(f"`{name}`").cast("string").alias(alias) for name, alias in ((user, "user"), (item, "topic"))]
    return raw.select(*columns).where(F.col("user").isNotNull() & F.col("topic").isNotNull()).select("user", "topic")


def format_of(path: Path) -> str:
    """From the file's name, or the names inside a directory."""
    names = sorted(path.iterdir()) if path.is_dir() else [path]
    for name in names:
        suffixes = [suffix for suffix in name.suffixes if suffix not in COMPRESSED]
        if not name.name.startswith(("_", ".")) and suffixes and suffixes[-1] in FORMATS:
            return FORMATS[suffixes[-1]]
    raise BadInput(f"{path} does not say its format by its name; name one of csv, json, parquet")


def _reader(spark: SparkSession, kind: str) -> DataFrameReader:
    reader = spark.read.format(kind)
    return reader.option("header", True) if kind == "csv" else reader


def _reason(error: Exception) -> str:
    """The innermost cause of what the JVM reports, without its pages of stack."""
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    line = causes[-1] if causes else str(error).splitlines()[0]
    return line.removeprefix("Caused by: ").split("Exception: ")[-1]
