"""Raw subscription logs (user, item[, time]) as CSV, JSON lines or Parquet."""

import csv
import io
import json
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from cubecast.errors import BadInput
from cubecast.pipeline.workloads.table import local_path

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
