"""Traces with many topics, as even or as skewed as wanted, straight from numpy.

All messages have places in one order, in which every subscriber delivers those of its topics, and a publisher publishes
when it is the next one's turn: so all that was delivered before is a cause. What differs between shapes is only how
many messages each topic gets and who subscribes to it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.synthetic_traces import PROMISES
from cubecast.trace.event import RunInfo
from cubecast.trace.schema import RUN_FILE
from cubecast.trace.writer import ARROW_SCHEMA, ROWS_PER_GROUP


@dataclass(frozen=True)
class Skewed:
    name: str
    nodes: int
    members: Any
    """Who subscribes: a row per topic, a column per node."""
    messages: Any
    """Of each topic, in the order in which they are published."""

    @property
    def deliveries(self) -> int:
        return int(self.members.sum(axis=1)[self.messages].sum())


def shapes(deliveries: int, nodes: int = 64, seed: int = 1) -> list[Skewed]:
    """The even case first."""
    rng = np.random.default_rng(seed)

    def made(name: str, members: Any, weights: Any) -> Skewed:
        each = members.sum(axis=1)
        many = int(deliveries / ((weights * each).sum() / weights.sum()))
        return Skewed(name, nodes, members, rng.choice(len(weights), many, p=weights / weights.sum()))

    def drawn(topics: int, subscribers: int) -> Any:
        members = np.zeros((topics, nodes), bool)
        members[np.arange(topics)[:, None], rng.random((topics, nodes)).argsort(axis=1)[:, :subscribers]] = True
        return members

    hot_topic = np.ones(1000)
    hot_topic[0] = 9 * 999
    hot_node = drawn(64, 2)
    hot_node[:, 0] = True
    return [
        made("even: 64 topics of 16 subscribers", drawn(64, 16), np.ones(64)),
        made("one topic with nine tenths of 1,000 topics' messages", drawn(1000, 16), hot_topic),
        made("one node in every topic, two others in each", hot_node, np.ones(64)),
        made("28,000 topics of 3 subscribers", drawn(28_000, 3), np.ones(28_000)),
    ]


def write(directory: Path, shape: Skewed) -> None:
    directory.mkdir(parents=True)
    info = RunInfo(directory.name, "synthetic", PROMISES, nodes=shape.nodes)
    (directory / RUN_FILE).write_text(json.dumps(info.to_json()))
    topics = shape.members.shape[0]
    publishers = shape.members.argmax(axis=1)  # one for each topic: its first subscriber
    by_publisher = publishers[shape.messages]
    counters = np.empty(len(shape.messages), np.int64)
    for topic_places in _grouped(shape.messages, topics):  # counters are a publisher's of a topic
        counters[topic_places] = np.arange(1, len(topic_places) + 1)
    names = pa.array([f"t{number}" for number in range(topics)])
    for node in range(shape.nodes):
        table = _node_table(directory.name, shape, node, by_publisher, counters, names)
        path = directory / f"nodes-{node:05d}.parquet"
        pq.write_table(table, path, compression="zstd", row_group_size=ROWS_PER_GROUP)


def mix(directory: Path) -> None:
    """The same rows by time, so that every row group has rows of every node, as streams from a cluster write them."""
    files = sorted(directory.glob("nodes-*.parquet"))
    rows = pa.concat_tables(pq.read_table(path, schema=ARROW_SCHEMA) for path in files)
    order = np.argsort(rows.column("time").to_numpy(), kind="stable")
    pq.write_table(rows.take(order), directory / "mixed.parquet", compression="zstd", row_group_size=ROWS_PER_GROUP)
    for path in files:
        path.unlink()


def _grouped(values: Any, groups: int) -> list[Any]:
    order = np.argsort(values, kind="stable")
    return np.split(order, np.searchsorted(values[order], np.arange(1, groups)))


def _node_table(run: str, shape: Skewed, node: int, by_publisher: Any, counters: Any, names: pa.Array) -> pa.Table:
    subscribed = np.flatnonzero(shape.members[:, node])
    delivered = np.flatnonzero(shape.members[shape.messages, node])
    is_mine = by_publisher[delivered] == node
    # a publication's row stands in front of its publisher's own delivery
    place = np.repeat(delivered, 1 + is_mine)
    kind = np.full(len(place), 1, np.int8)
    kind[np.flatnonzero(is_mine) + np.arange(int(is_mine.sum()))] = 0
    opening = np.repeat(subscribed, 2)
    size = len(opening) + len(place) + 1
    kinds = pa.array(["publish", "deliver", "subscribe", "subscribed", "quiescent"])
    codes = np.concatenate((np.tile(np.array([2, 3], np.int8), len(subscribed)), kind, np.array([4], np.int8)))
    topic = np.concatenate((opening, shape.messages[place]))
    head = len(opening)

    def padded(values: Any, of: pa.DataType) -> pa.Array:
        return pa.concat_arrays([pa.nulls(head, of), pa.array(values, of), pa.nulls(1, of)])

    columns: dict[str, Any] = {
        "run": pa.repeat(pa.scalar(run), size),
        "node": np.full(size, node, np.int64),
        "incarnation": np.zeros(size, np.int32),
        "seq": np.arange(size),
        "time": np.concatenate((np.zeros(head), place * 1e-3, [len(shape.messages) * 1e-3])),
        "kind": kinds.take(pa.array(codes)),
        "topic": pa.concat_arrays([names.take(pa.array(topic)), pa.nulls(1, pa.string())]),
        "source": padded(by_publisher[place], pa.int64()),
        "source_incarnation": padded(np.zeros(len(place), np.int32), pa.int32()),
        "counter": padded(counters[place], pa.int64()),
    }
    arrays = [
        pa.nulls(size, field.type)
        if (values := columns.get(field.name)) is None
        else values
        if isinstance(values, pa.Array)
        else pa.array(values, field.type)
        for field in ARROW_SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=ARROW_SCHEMA)
