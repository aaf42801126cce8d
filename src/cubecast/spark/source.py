"""The format "cubecast" for Spark, and reading once what a log has by now. Follows decision 0065."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from cubecast.api.sync import SyncClient
from cubecast.errors import BadInput
from cubecast.net.port.ranges import TopicLog
from cubecast.spark.logs import Range, Task, opened, read_task, tasks
from cubecast.spark.options import Options, read_options, write_options
from cubecast.spark.sink import TopicStream, TopicWriter
from cubecast.spark.stream import LogStream

# Filters that Spark hands to the source: topics, offsets and times narrow what is read; Spark applies them again.

TICK = 1e-6
"""Seconds: what a timestamp of Spark tells apart."""


@dataclass
class Narrowed:
    """Which rows can pass, as far as the log's index can tell."""

    topics: set[str] | None = None
    prefixes: list[str] = field(default_factory=list)
    first: int = 1
    last: int | None = None
    since: float | None = None
    until: float | None = None

    def take(self, filters: Iterable[Filter]) -> None:
        for one in filters:
            attribute: tuple[str, ...] = getattr(one, "attribute", ())
            if len(attribute) == 1:
                self._take(attribute[0], one)

    def _take(self, name: str, one: Any) -> None:
        match name, one:
            case "topic", EqualTo():
                self._only({one.value})
            case "topic", In():
                self._only(set(one.value))
            case "topic", StringStartsWith():
                self.prefixes.append(one.value)
            case "offset", EqualTo() | GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
                low, high = _interval(one, int(one.value), 1)
                self.first = self.first if low is None else max(self.first, low)
                self.last = high if self.last is None or (high is not None and high < self.last) else self.last
            case "time", EqualTo() | GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
                if isinstance(one.value, datetime):
                    low, high = _interval(one, one.value.timestamp(), TICK)
                    self.since = low if self.since is None or (low is not None and low > self.since) else self.since
                    self.until = high if self.until is None or (high is not None and high < self.until) else self.until

    def _only(self, topics: set[str]) -> None:
        self.topics = topics if self.topics is None else self.topics & topics

    def allows(self, topic: str) -> bool:
        return (self.topics is None or topic in self.topics) and all(map(topic.startswith, self.prefixes))


def _interval(one: Any, value: Any, step: Any) -> tuple[Any, Any]:
    """The least and the largest value that can pass, as far as there are any."""
    match one:
        case EqualTo():
            return value, value
        case GreaterThan():
            return value + step, None
        case GreaterThanOrEqual():
            return value, None
        case LessThan():
            return None, value - step
    return None, value


# The format.


def register(spark: SparkSession) -> None:
    """Make the session know the format "cubecast", and hand it filters, which Spark does only when told."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(CubecastDataSource)


class CubecastDataSource(DataSource):  # type: ignore[misc]  # PySpark has no types for us
    @classmethod
    def name(cls) -> str:
        return "cubecast"

    def schema(self) -> str:
        return read_options(self.options).schema

    def reader(self, schema: object) -> "LogReader":
        return LogReader(read_options(self.options))

    def streamReader(self, schema: object) -> LogStream:  # noqa: N802 - Spark's name
        return LogStream(read_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> TopicWriter:
        if overwrite:
            raise BadInput('what was published stays published: write with .mode("append")')
        return TopicWriter(write_options(self.options), schema.names)

    def streamWriter(self, schema: StructType, overwrite: bool) -> TopicStream:  # noqa: N802
        if overwrite:
            raise BadInput('what was published stays published: .outputMode("append")')
        return TopicStream(write_options(self.options), schema.names)


class LogReader(DataSourceReader):  # type: ignore[misc]
    """What is durable when the query is planned: a task that is repeated reads the same rows."""

    def __init__(self, options: Options) -> None:
        if options.since == "now":
            raise BadInput("since: a table of what comes from now on is empty; write beginning, or use readStream")
        self.options, self.narrowed = options, Narrowed()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        self.narrowed.take(filters)
        return filters

    def partitions(self) -> Sequence[Task]:
        with opened(self.options) as (client, topics):
            allowed = [one for one in topics.values() if self.narrowed.allows(one.topic)]
            ranges = [Range(one.log_id, one.topic, *self._bounds(client, one)) for one in allowed]
            return tasks(ranges, self.options.rows_per_partition)

    def _bounds(self, client: SyncClient, one: TopicLog) -> tuple[int, int]:
        def at(time: float) -> int:
            return client.log_at(one.topic, time, timeout=60.0)

        since, narrowed = self.options.since, self.narrowed
        start = since if isinstance(since, int) else at(since) if isinstance(since, float) else one.first
        stop = one.durable + 1
        if narrowed.first > one.first:
            start = max(start, narrowed.first)
        if narrowed.last is not None:
            stop = min(stop, narrowed.last + 1)
        if narrowed.since is not None:
            start = max(start, at(narrowed.since - TICK))
        if narrowed.until is not None:
            stop = min(stop, at(narrowed.until + TICK))
        return start, stop

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Task):  # where there are none, Spark makes one of its own
            yield from read_task(self.options, partition)
