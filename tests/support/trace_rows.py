"""Trace rows for the metric tests: only what differs from nothing is written down."""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cubecast.pipeline.metrics.source import TRACE_DDL
from cubecast.trace.event import Event, Inside
from cubecast.trace.schema import COLUMN_NAMES

Row = dict[str, Any]


def row(node: int, seq: int, time: float, kind: str, **rest: Any) -> Row:
    return {"run": "r", "node": node, "incarnation": 0, "seq": seq, "time": float(time), "kind": kind, **rest}


def about(source: int, counter: int, topic: str = "t") -> Row:
    return {"topic": topic, "source": source, "source_incarnation": 0, "counter": counter}


def sent(to: int, packet: int, messages: int = 1, size: int = 100) -> Row:
    return {"peer": to, "packet": packet, "messages": messages, "bytes": size}


def received(sender: int, packet: int, hops: int = 1, messages: int = 1) -> Row:
    return {"peer": sender, "packet": packet, "messages": messages, "bytes": 100, "hops": hops}


def trace(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    listed = [one | {"messages": inside(one)} for one in rows]
    return spark.createDataFrame([tuple(one.get(name) for name in COLUMN_NAMES) for one in listed], TRACE_DDL)


def inside(one: Row) -> list[tuple[str | None, int, int, int]] | None:
    """A number of messages as the row's message and the next ones; None as it is."""
    count = one.get("messages")
    if not isinstance(count, int):
        return count
    if "counter" not in one:
        return []
    return [(None, one["source"], one["source_incarnation"], one["counter"] + more) for more in range(count)]


def event(one: Row) -> Event:
    """As the trace's writer takes it."""
    told = inside(one)
    listed = None if told is None else tuple(Inside(*name, topic) for topic, *name in told)
    return Event(**{key: value for key, value in one.items() if key != "run"} | {"messages": listed})


def relayed_story() -> list[Row]:
    """Nodes 0 and 2 subscribe to t, node 1 does not and relays.

    0 publishes (0,1) at 10; 1 gets it at 20 and forwards; 2 gets it at 30. 2 publishes (2,1) at 40 after delivering
    (0,1) at 35, sends it straight to 0, twice; 0 receives both at 50 and 52 and delivers at 50.
    """
    return [
        row(0, 0, 0, "subscribe", topic="t"),
        row(0, 1, 1, "subscribed", topic="t"),
        row(0, 2, 10, "publish", **about(0, 1), deps=()),
        row(0, 3, 10, "deliver", **about(0, 1)),
        row(0, 4, 10, "send", **about(0, 1), **sent(1, 1)),
        row(0, 5, 50, "receive", **about(2, 1), **received(2, 3, hops=1)),
        row(0, 6, 50, "deliver", **about(2, 1)),
        row(0, 7, 52, "receive", **about(2, 1), **received(2, 4, hops=1)),
        row(1, 0, 20, "receive", **about(0, 1), **received(0, 1, hops=1)),
        row(1, 1, 20, "send", **about(0, 1), **sent(2, 2)),
        row(1, 2, 60, "send", peer=0, packet=5, bytes=20),
        row(2, 0, 0, "subscribe", topic="t"),
        row(2, 1, 4, "subscribed", topic="t"),
        row(2, 2, 30, "receive", **about(0, 1), **received(1, 2, hops=2)),
        row(2, 3, 35, "deliver", **about(0, 1)),
        row(2, 4, 40, "publish", **about(2, 1), deps=((0, 0, 1),)),
        row(2, 5, 40, "deliver", **about(2, 1)),
        row(2, 6, 40, "send", **about(2, 1), **sent(0, 3)),
        row(2, 7, 41, "send", **about(2, 1), **sent(0, 4)),
    ]
