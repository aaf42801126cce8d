"""The log that is read: found by its id among the nodes that were named, asked for its ends and for ranges.

Follows decision 0064.
"""

import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from cubecast.addresses import Address
from cubecast.api import sync
from cubecast.api.log_reading import LOG_COLUMNS, log_schema
from cubecast.errors import BadInput, CubecastError, DamagedLog, Forgotten
from cubecast.net.port.ranges import TopicLog
from cubecast.spark.options import Options
from cubecast.spark.places import Cut, Received, publisher_cut

MICROSECONDS = 1_000_000
SILENCE = 3.0
ROWS_AT_ONCE = 32_768
"""Of a record batch: in smaller ones, Spark's handling of each takes longer than the rows do."""
PATIENCE = 0.1
"""Seconds after which a lost node is given up: its offsets count nowhere else."""


class NoSuchLog(BadInput):
    """None of the nodes keeps it at present."""


@dataclass
class Range:
    """Offsets of a topic in one log, from `start` on and before `stop`."""

    log_id: str
    topic: str
    start: int
    stop: int
    behind: Cut = field(default_factory=dict)
    """Rows that were read elsewhere, and are left out."""
    upto: Cut | None = None
    """Rows beyond this are another batch's."""
    is_moved: bool = False
    """It was planned in another log: what this one lacks has to be told."""


@dataclass
class Task(InputPartition):  # type: ignore[misc]  # PySpark has no types for us
    """What one task reads, one after the other: small topics together, because a task costs more than their rows."""

    ranges: list[Range]


def tasks(ranges: Iterable[Range], most: int) -> list[Task]:
    """Tasks of so many rows at most. A longer range becomes several of the same length."""
    made: list[Task] = []
    room = 0
    for one in ranges:
        many = -(-(one.stop - one.start) // most)
        for part in range(many):
            start, stop = (one.start + (one.stop - one.start) * place // many for place in (part, part + 1))
            piece = one if many == 1 or one.is_moved else replace(one, start=start, stop=stop)
            if piece.stop - piece.start > room or made[-1].ranges[0].log_id != one.log_id:
                made.append(Task([]))
                room = most
            made[-1].ranges.append(piece)
            room -= piece.stop - piece.start
            if piece is one:
                break
    return made


def open_log(options: Options, log_id: str | None = None) -> tuple[sync.SyncClient, dict[str, TopicLog]]:
    """A connection to the first node that keeps the log of this id, or any log; and what it has of the topics."""
    told: list[str] = []
    for address in options.nodes:
        client = None
        if len(options.nodes) > 1 and (why := _silence(address)):
            told.append(f"{address}: {why}")
            continue
        try:
            login = options.access.login()
            client = sync.connect(address, cluster=options.access.cluster, patience=PATIENCE, login=login)
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
    raise NoSuchLog(f"none of the nodes keeps {what} at present; add the one that does to nodes ({'; '.join(told)})")


def _silence(address: str) -> str:
    """Why nobody listens there, which connecting would find out after some seconds only; there are others to ask."""
    parsed = Address.parse(address)
    try:
        socket.create_connection((parsed.host, parsed.port), SILENCE).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


@contextmanager
def opened(options: Options, log_id: str | None = None) -> Iterator[tuple[sync.SyncClient, dict[str, TopicLog]]]:
    client, topics = open_log(options, log_id)
    try:
        yield client, topics
    finally:
        client.close()


def message_at(client: sync.SyncClient, one: TopicLog, offset: int) -> list[int] | None:
    """The name of the message there and a checksum of it; None when the log does not have it."""
    if not one.first <= offset <= one.last:
        return None
    try:
        rows = client.read_log(one.topic, offset, offset + 1, 60.0, columns=[*NAMES, "payload"]).to_pylist()
    except (Forgotten, DamagedLog):
        return None
    return [*(rows[0][name] for name in NAMES[1:]), crc32(rows[0]["payload"])] if rows else None


def read_task(options: Options, task: Task) -> Iterator[pa.RecordBatch]:
    """The log's id is asked for before and after: a node replaced in between fails the task, which is repeated."""
    log_id, topic = task.ranges[0].log_id, task.ranges[0].topic
    with opened(options, log_id) as (client, _):
        for part in task.ranges:
            yield from _rows(options, client, part)
        if not any(one.log_id == log_id for one in client.log_topics(timeout=60.0)):
            raise BadInput(f"{topic}: the log was replaced while offsets from {task.ranges[0].start} on were read")


def _rows(options: Options, client: sync.SyncClient, part: Range) -> Iterator[pa.RecordBatch]:
    received = Received(part.topic, part.behind, part.upto) if part.is_moved and not options.where else None
    for batch in _readable(options, client, part):
        if received is not None:
            received.add(batch)
        yield _columns(options, batch, part.log_id)
    if received is not None and (missing := received.missing()):
        if options.fail_on_data_loss:
            raise BadInput(f"{part.topic}: {received.complaint(part.log_id)}")
        yield _columns(options, missing, part.log_id)


def _readable(options: Options, client: sync.SyncClient, part: Range) -> Iterator[pa.RecordBatch]:
    """The rows; where the log does not have them any more and that may be, a row that says so."""
    start = part.start
    which: dict[str, Any] = {"behind": publisher_cut(part.topic, part.behind), "where": options.where}
    which["upto"] = None if part.upto is None else publisher_cut(part.topic, part.upto)
    which["rows"] = ROWS_AT_ONCE
    which["columns"] = _needed(options, part.is_moved)
    while start < part.stop:
        try:
            for batch in client.log_batches(part.topic, start, part.stop, **which):
                start = batch.column("offset")[-1].as_py() + 1
                yield batch
            return
        except (Forgotten, DamagedLog):
            if options.fail_on_data_loss:
                raise
            begin, start = start, _next_readable(client, part.topic, start, part.stop)
            row = {"topic": part.topic, "offset": begin, GAP: True}
            yield pa.RecordBatch.from_pylist([row], gap_schema())


def _next_readable(client: sync.SyncClient, topic: str, start: int, stop: int) -> int:
    """The first offset behind a range that cannot be read: halving finds it, as such ranges have no holes."""

    def is_readable(offset: int) -> bool:
        try:
            next(client.log_batches(topic, offset, offset + 1), None)
        except (Forgotten, DamagedLog):
            return False
        return True

    step = 1
    while start + step < stop and not is_readable(start + step):
        step *= 2
    low, high = start + step // 2, min(start + step, stop)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_readable(middle) else (middle, high)
    return high


GAP = "gap"
NAMES = ("offset", "source", "incarnation", "counter")


def gap_schema() -> pa.Schema:
    return log_schema().append(pa.field(GAP, pa.bool_()))


def _needed(options: Options, is_moved: bool) -> list[str]:
    """Of the columns that a node has; the offset always, to know how far reading came."""
    wanted = {*options.columns, *(NAMES if is_moved else NAMES[:1])}
    return [name for name in LOG_COLUMNS if name in wanted]


def _columns(options: Options, batch: pa.RecordBatch, log_id: str) -> pa.RecordBatch:
    return pa.record_batch([_column(batch, name, log_id) for name in options.columns], names=list(options.columns))


def _column(batch: pa.RecordBatch, name: str, log_id: str) -> pa.Array:
    if name == "log":
        return pa.repeat(pa.scalar(log_id), batch.num_rows)
    if name == GAP and GAP not in batch.schema.names:
        return pa.repeat(pa.scalar(False), batch.num_rows)
    if name == "time":
        exact = pc.round(pc.multiply(batch.column("time"), MICROSECONDS))
        return exact.cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
    return batch.column(name)
