"""The format "cubecast" for Spark, and reading once what a log has by now."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from cubecast.errors import BadInput
from cubecast.spark.logs import Range, opened, ranges, read_range
from cubecast.spark.options import Options, read_options
from cubecast.spark.stream import LogStream


def register(spark: SparkSession) -> None:
    """Make the session know the format "cubecast"."""
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


class LogReader(DataSourceReader):  # type: ignore[misc]
    """What is durable when the query is planned: a task that is repeated reads the same rows."""

    def __init__(self, options: Options) -> None:
        if options.since == "now":
            raise BadInput("since: a table of what comes from now on is empty; write beginning, or use readStream")
        self.options = options

    def partitions(self) -> Sequence[Range]:
        with opened(self.options) as (_, topics):
            parts: list[Range] = []
            for one in topics.values():
                start = self.options.since if isinstance(self.options.since, int) else one.first
                parts += ranges(one.log_id, one.topic, start, one.durable + 1, self.options.rows_per_partition)
            return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Range):  # where there are none, Spark makes one of its own
            yield from read_range(self.options, partition)
