"""The log that is read: found by its id among the nodes that were named, asked for its ends and for ranges."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from cubecast.api import sync
from cubecast.errors import BadInput, CubecastError
from cubecast.net.log.ranges import TopicLog
from cubecast.spark.options import Options

MICROSECONDS = 1_000_000
PATIENCE = 0.1
"""Seconds after which a lost node is given up: its offsets count nowhere else."""


@dataclass
class Range(InputPartition):  # type: ignore[misc]  # PySpark has no types for us
    """Offsets of a topic in one log, from `start` on and before `stop`."""

    log_id: str
    topic: str
    start: int
    stop: int


def ranges(log_id: str, topic: str, start: int, stop: int, most: int) -> list[Range]:
    return [Range(log_id, topic, one, min(one + most, stop)) for one in range(start, stop, most)]


def open_log(options: Options, log_id: str | None = None) -> tuple[sync.SyncClient, dict[str, TopicLog]]:
    """A connection to the first node that keeps the log of this id, or any log; and what it has of the topics."""
    told: list[str] = []
    for address in options.nodes:
        client = None
        try:
            client = sync.connect(address, cluster=options.cluster, patience=PATIENCE)
            listed = client.log_topics(timeout=60.0)
        except (CubecastError, TimeoutError) as error:
            told.append(f"{address}: {error}")
        else:
            if log_id is None or any(one.log_id == log_id for one in listed):
                return client, {one.topic: one for one in listed if options.selects(one.topic)}
            told.append(f"{address} keeps another log")
        if client is not None:
            client.close()
    what = "a log" if log_id is None else f"log {log_id}, from which this query read before,"
    raise BadInput(f"none of the nodes keeps {what} at present; add the one that does to nodes ({'; '.join(told)})")


@contextmanager
def opened(options: Options, log_id: str | None = None) -> Iterator[tuple[sync.SyncClient, dict[str, TopicLog]]]:
    client, topics = open_log(options, log_id)
    try:
        yield client, topics
    finally:
        client.close()


def read_range(options: Options, part: Range) -> Iterator[pa.RecordBatch]:
    """The log's id is asked for before and after: a node replaced in between fails the task, which is repeated."""
    with opened(options, part.log_id) as (client, _):
        for batch in client.log_batches(part.topic, part.start, part.stop):
            yield _columns(options, batch, part.log_id)
        if not any(one.log_id == part.log_id for one in client.log_topics(timeout=60.0)):
            raise BadInput(f"{part.topic}: the log was replaced while offsets from {part.start} on were read")


def _columns(options: Options, batch: pa.RecordBatch, log_id: str) -> pa.RecordBatch:
    columns = []
    for name in options.columns:
        if name == "log":
            columns.append(pa.array([log_id] * batch.num_rows, pa.string()))
        elif name == "time":
            exact = pc.round(pc.multiply(batch.column("time"), MICROSECONDS))
            columns.append(exact.cast(pa.int64()).cast(pa.timestamp("us", "UTC")))
        else:
            columns.append(batch.column(name))
    return pa.record_batch(columns, names=list(options.columns))
