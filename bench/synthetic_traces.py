"""Traces of any size, straight from numpy into the layout of our own writer.

Rounds: in each, a few publishers publish, having delivered all earlier rounds; then everybody delivers the round, each
node in an order of its own. So messages of a round are concurrent, and depend directly on all of the round before.
"""

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cubecast.trace.event import RunInfo
from cubecast.trace.schema import RUN_FILE
from cubecast.trace.writer import ARROW_SCHEMA, MOST_FILES, ROWS_PER_GROUP

PROMISES = ("K0", "K1", "K2", "K3", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P11")
TOPIC = "t"


@dataclass(frozen=True)
class Shape:
    """How big a trace is."""

    nodes: int
    rounds: int
    publishers: int = 16
    per_round: int = 2

    @property
    def messages(self) -> int:
        return self.rounds * self.per_round

    @property
    def deliveries(self) -> int:
        return self.nodes * self.messages

    @classmethod
    def of(cls, deliveries: int) -> "Shape":
        """About the square root of nodes against messages that a real run of that size has."""
        nodes = max(20, int((deliveries / 100) ** 0.5))
        return cls(nodes, deliveries // nodes // 2)


@dataclass(frozen=True)
class Fault:
    """What is wrong at one node."""

    node: int
    kind: str
    """swap: an effect before its cause; lose: one delivery is missing; repeat: one is there twice."""


def write(directory: Path, shape: Shape, faults: tuple[Fault, ...] = (), processes: int = 2) -> None:
    directory.mkdir(parents=True)
    info = RunInfo(directory.name, "synthetic", PROMISES, nodes=shape.nodes)
    (directory / RUN_FILE).write_text(json.dumps(info.to_json()))
    shards = range(min(MOST_FILES, shape.nodes))
    with ProcessPoolExecutor(processes) as pool:
        list(pool.map(partial(_write_file, directory, shape, faults), shards))


def _write_file(directory: Path, shape: Shape, faults: tuple[Fault, ...], shard: int) -> None:
    path = directory / f"nodes-{shard:05d}.parquet"
    with pq.ParquetWriter(path, ARROW_SCHEMA, compression="zstd") as file:
        for node in range(shard, shape.nodes, MOST_FILES):
            table = node_table(directory.name, shape, node, [fault.kind for fault in faults if fault.node == node])
            file.write_table(table, row_group_size=ROWS_PER_GROUP)


def node_table(run: str, shape: Shape, node: int, faults: list[str]) -> pa.Table:
    """All rows of one node."""
    message = _deliveries(shape, node, faults)
    rounds = message // shape.per_round
    kind = np.full(len(message), "deliver", object)
    mine = np.flatnonzero(_source(shape, np.arange(shape.messages)) == node)
    # A publication comes before the deliveries of its round, its acknowledgement after them.
    before = np.searchsorted(np.maximum.accumulate(rounds), mine // shape.per_round)
    after = np.searchsorted(np.maximum.accumulate(rounds), mine // shape.per_round, side="right")
    where = np.concatenate((before, after))
    kind = np.insert(kind, where, ["publish"] * len(mine) + ["acknowledged"] * len(mine))
    message = np.insert(message, where, np.concatenate((mine, mine)))
    size = len(message) + 3
    columns: dict[str, Any] = {
        "run": pa.array([run]).take(pa.array(np.zeros(size, np.int32))),
        "node": np.full(size, node, np.int64),
        "incarnation": np.zeros(size, np.int32),
        "seq": np.arange(size),
        "time": np.arange(size) * 1e-3,
        "kind": np.concatenate((["subscribe", "subscribed"], kind, ["quiescent"])).astype(object),
        "topic": pa.array([TOPIC] * (size - 1) + [None], pa.string()),
        "source": _padded(_source(shape, message), pa.int64()),
        "source_incarnation": _padded(np.zeros(len(message), np.int32), pa.int32()),
        "counter": _padded(_counter(shape, message), pa.int64()),
        "deps": _claims(shape, np.where(kind == "publish", message, -1)),
    }
    arrays = [_column(field, columns.get(field.name), size) for field in ARROW_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=ARROW_SCHEMA)


def _column(field: pa.Field, values: Any, size: int) -> pa.Array:
    if values is None:
        return pa.nulls(size, field.type)
    return values if isinstance(values, pa.Array) else pa.array(values, field.type)


def _deliveries(shape: Shape, node: int, faults: list[str]) -> Any:
    rng = np.random.default_rng(node)
    order = rng.random((shape.rounds, shape.per_round)).argsort(axis=1)
    message = (order + np.arange(shape.rounds)[:, None] * shape.per_round).reshape(-1)
    middle = len(message) // 2 // shape.per_round * shape.per_round
    for fault in faults:
        if fault == "swap":
            message[[middle - 1, middle]] = message[[middle, middle - 1]]
        elif fault == "lose":
            message = np.delete(message, middle)
        else:
            message = np.insert(message, middle, message[middle - 1])
    return message


def _source(shape: Shape, message: Any) -> Any:
    return (message % shape.publishers).astype(np.int32)


def _counter(shape: Shape, message: Any) -> Any:
    return message // shape.publishers + 1


def _padded(values: Any, kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays([pa.nulls(2, kind), pa.array(values, kind), pa.nulls(1, kind)])


def _claims(shape: Shape, published: Any) -> pa.Array:
    """On publish rows, the messages of the round before."""
    rows = np.flatnonzero(published >= shape.per_round) + 2
    lengths = np.zeros(len(published) + 3, np.int64)
    lengths[rows] = shape.per_round
    first = (published[rows - 2] // shape.per_round - 1) * shape.per_round
    message = (first[:, None] + np.arange(shape.per_round)).reshape(-1)
    kind = ARROW_SCHEMA.field("deps").type
    parts = [_source(shape, message), np.zeros(len(message), np.int32), _counter(shape, message)]
    fields = list(kind.value_type)
    ids = pa.StructArray.from_arrays([pa.array(p, f.type) for p, f in zip(parts, fields, strict=True)], fields=fields)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    absent = np.append(lengths == 0, False)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32(), mask=absent), ids, type=kind)
