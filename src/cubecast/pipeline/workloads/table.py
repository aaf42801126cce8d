"""Subscriptions on disk, and where in them something is wrong: tables, and raw logs (user, item[, time]) as CSV, JSON
lines or Parquet.
"""

import csv
import io
import json
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

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


# Raw subscription logs (user, item[, time]) as CSV, JSON lines or Parquet.

FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
CORRUPT = "_not_to_be_read"
COMPRESSED = (".gz", ".bz2", ".zst")


class LogFormat(NamedTuple):
    path: Path
    """A file, or a directory of files."""
    user: str = "user"
    item: str = "item"
    kind: str | None = None
    """csv, json or parquet; otherwise told by the name."""
    skip: bool = False
    """Leave out rows that are no pair, instead of refusing the log."""

    def check(self) -> str:
        """The format it is to be read in; BadInput when that is clear to be in vain before anything is read."""
        if not self.path.exists():
            raise BadInput(f"there is no log {self.path}")
        return self.kind or format_of(self.path)


class Pairs(NamedTuple):
    """What a log holds; a pair may stand there several times."""

    found: DataFrame
    """→ user string, topic string"""
    skipped: int

    def release(self) -> None:
        self.found.unpersist()


def read_log(spark: SparkSession, log: LogFormat) -> Pairs:
    """The subscriptions of a log; of other columns, such as a time, only their number counts.

    Parquet is read again for every question, column by column; what has to be parsed is parsed once and kept.
    """
    kind = log.check()
    try:
        rows = _rows(spark, log, kind)
        if kind != "parquet":
            rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        wrong = _wrong_rows(rows, log, kind)
        found = rows.where("topic IS NOT NULL AND NOT wrong").select("user", "topic")
        empty = found.isEmpty()
    except Exception as error:
        # What the JVM throws comes in Py4J's classes, some of them not wrapped by PySpark.
        if isinstance(error, PySparkException) or type(error).__module__.startswith("py4j"):
            raise BadInput(f"{log.path} cannot be read as {kind}: {_reason(error)}") from None
        raise
    if empty:
        raise BadInput(f"{log.path} holds no subscription: no row has both {log.user} and {log.item}")
    return Pairs(found, wrong)


def _rows(spark: SparkSession, log: LogFormat, kind: str) -> DataFrame:
    """→ user, topic, wrong, file (and row, of Parquet)"""
    reader = spark.read.format(kind)
    if kind == "csv":
        names = reader.option("header", True).load(str(log.path)).columns
        reader = reader.options(header=True, enforceSchema=False)
    else:
        names = [log.user, log.item] if kind == "json" else reader.load(str(log.path)).columns
    missing = [name for name in (log.user, log.item) if name not in names]
    if missing:
        raise BadInput(f"{log.path} has no column {' and no column '.join(missing)}; it has {', '.join(names)}")
    if kind != "parquet":
        reader = reader.option("columnNameOfCorruptRecord", CORRUPT).schema(
            StructType([StructField(name, StringType()) for name in (*names, CORRUPT)])
        )
    user, topic = (F.col(f"`{name}`").cast("string") for name in (log.user, log.item))
    lacking = user.isNull() | topic.isNull()
    wrong = lacking if kind == "parquet" else lacking | F.col(CORRUPT).isNotNull()
    place = [F.col("_metadata.file_path").alias("file")]
    if kind == "parquet":
        place.append(F.col("_metadata.row_index").alias("row"))
    return reader.load(str(log.path)).select(user.alias("user"), topic.alias("topic"), wrong.alias("wrong"), *place)


def _wrong_rows(rows: DataFrame, log: LogFormat, kind: str) -> int:
    """How many rows are no pair; BadInput with the first one's place unless they are to be left out."""
    wrong = rows.where("wrong")
    if log.skip:
        return int(wrong.count())
    first = wrong.orderBy("file", *(["row"] if kind == "parquet" else [])).limit(1).collect()
    if not first:
        return 0
    file = local_path(first[0].file)
    row = first[0].row + 1 if kind == "parquet" else wrong_line(Path(file), kind, log.user, log.item)
    place = file if row is None else f"{file}, row {row}"
    raise BadInput(f"{place}: this is no pair of {log.user} and {log.item}; --skip-malformed leaves such rows out")


def wrong_line(path: Path, kind: str, user: str, item: str) -> int | None:
    """The first line of a text that is no pair, counted from 1, a header too. Spark knows the file, not the line."""
    if not path.is_file():
        return None
    with pa.input_stream(path, compression="detect") as stream, io.TextIOWrapper(stream, "utf-8", "replace") as text:
        header = next(csv.reader(text), []) if kind == "csv" else []
        for number, line in enumerate(text, len(header[:1]) + 1):
            if line.strip() and not _is_pair(line, header, user, item):
                return number
    return None


def _is_pair(line: str, header: list[str], user: str, item: str) -> bool:
    if header:
        fields = next(csv.reader([line]), [])
        return len(fields) == len(header) and all(fields[header.index(name)] for name in (user, item))
    try:
        found = json.loads(line)
    except ValueError:
        return False
    return isinstance(found, dict) and all(found.get(name) is not None for name in (user, item))


def format_of(path: Path) -> str:
    """From the file's name, or the names inside a directory."""
    names = sorted(path.iterdir()) if path.is_dir() else [path]
    for name in names:
        suffixes = [suffix for suffix in name.suffixes if suffix not in COMPRESSED]
        if not name.name.startswith(("_", ".")) and suffixes and suffixes[-1] in FORMATS:
            return FORMATS[suffixes[-1]]
    raise BadInput(f"{path} does not say its format by its name; name one of csv, json, parquet")


def _reason(error: Exception) -> str:
    """The innermost cause of what the JVM reports, without its pages of stack."""
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    line = causes[-1] if causes else str(error).splitlines()[0]
    return line.removeprefix("Caused by: ").split("Exception: ")[-1]
