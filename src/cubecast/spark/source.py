"""The format "cubecast" for Spark, and reading once what a log has by now. Follows decision 0065."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from cubecast.api.sync import SyncClient
from cubecast.errors import BadInput
from cubecast.net.port.ranges import TopicLog
from cubecast.spark.logs import Range, Task, opened, read_task, tasks
from cubecast.spark.options import Options, read_options, write_options
from cubecast.spark.pushing import TICK, Narrowed
from cubecast.spark.sink import TopicStream, TopicWriter
from cubecast.spark.stream import LogStream


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
