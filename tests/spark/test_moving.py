"""A stream whose node is gone goes on in another node's log: the same messages, none twice; what is lost is told."""

from collections import Counter
from datetime import UTC, datetime
from time import monotonic

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from cubecast import sync
from cubecast.errors import BadInput
from cubecast.spark.options import read_options
from cubecast.spark.stream import LogStream
from support.commands import running_node

pytestmark = pytest.mark.spark

MANY = 120


class Query:
    """What Spark does with a stream: a checkpoint, planned batches, rows."""

    def __init__(self, **options: str) -> None:
        self.options = {"topics": "t", "pollSeconds": "0", "maxDelay": "0.5", **options}
        self.checkpoint = self.planned = None
        self.rows: list[dict] = []

    def stream(self, *nodes: str) -> LogStream:
        return LogStream(read_options({**self.options, "nodes": ",".join(nodes)}))

    def plan(self, *nodes: str, most: int | None = None) -> None:
        stream = self.stream(*nodes)
        if self.checkpoint is None:
            self.checkpoint = stream.initialOffset()
        self.planned = stream.latestOffset(self.checkpoint, ReadAllAvailable() if most is None else ReadMaxRows(most))
        stream.stop()

    def finish(self, *nodes: str) -> None:
        """The planned batch, which an earlier attempt may have begun elsewhere."""
        stream = self.stream(*nodes)
        for part in stream.partitions(self.checkpoint, self.planned):
            self.rows += [row for batch in stream.read(part) for row in batch.to_pylist()]
        self.checkpoint = self.planned
        stream.stop()

    def batch(self, *nodes: str, most: int | None = None) -> None:
        self.plan(*nodes, most=most)
        self.finish(*nodes)


def publish(node, start: int, stop: int) -> None:
    with sync.connect(node.address) as client:
        client.publish_batch("t", [b"%d" % number for number in range(start, stop)], wait="durable")
        client.stable("t", timeout=60)


def wait_for(node, many: int) -> None:
    """Until the node's log has so many, on its disk."""
    deadline = monotonic() + 60
    with sync.connect(node.address) as client:
        while [one.durable for one in client.log_topics() if one.topic == "t"] != [many]:
            assert monotonic() < deadline


def payloads(query: Query) -> Counter:
    return Counter(int(row["payload"]) for row in query.rows)


def test_the_same_messages_are_read_in_another_log(tmp_path):
    """Both nodes publish, so that the orders of their logs may differ; the first one is killed within a batch."""
    query = Query()
    with (
        running_node("--data", tmp_path / "a", "--log", ">") as one,
        running_node("--data", tmp_path / "b", "--log", ">", "--join", one.address) as two,
    ):
        for begin in range(0, MANY, 40):
            publish(one, begin, begin + 20)
            publish(two, begin + 20, begin + 40)
        wait_for(one, MANY)
        wait_for(two, MANY)
        nodes = one.address, two.address
        query.batch(*nodes, most=50)
        query.plan(*nodes, most=30)
        one.kill()
        query.finish(*nodes)
        assert len(query.rows) == 80
        assert {row["log"] for row in query.rows[:50]}.isdisjoint(row["log"] for row in query.rows[50:])
        query.batch(*nodes, most=25)
        publish(two, MANY, MANY + 10)
        query.batch(*nodes)
        assert payloads(query) == Counter(range(MANY + 10))
        by_publisher: dict[tuple, list[int]] = {}
        for row in query.rows:
            by_publisher.setdefault((row["source"], row["incarnation"]), []).append(row["counter"])
        assert all(counters == sorted(counters) for counters in by_publisher.values())


def test_what_the_other_log_lacks_is_named_or_marked(tmp_path):
    """The first node has messages that the second one never got."""
    with running_node("--data", tmp_path / "a", "--log", ">") as one:
        publish(one, 0, 10)
        assert one.stop() == 0
    strict, lenient = Query(), Query(failOnDataLoss="false")
    with running_node("--data", tmp_path / "b", "--log", "t") as two:
        with running_node("--data", tmp_path / "a", "--log", ">") as one:
            for query in (strict, lenient):
                query.plan(one.address, two.address)
            assert one.stop() == 0
        publish(two, 50, 52)
        with pytest.raises(BadInput, match=r"lacks messages of it \(publisher, counters: 0\.0 \d+ to 10\)"):
            strict.finish(two.address)
        lenient.finish(two.address)
    gaps = [row["counter"] for row in lenient.rows if row["gap"]]
    assert gaps
    assert gaps[-1] == 10


def test_a_stream_begins_at_a_time(tmp_path):
    with running_node("--data", tmp_path, "--log", ">") as node:
        publish(node, 0, 10)
        with sync.connect(node.address) as client:
            publish(node, 10, 30)
            at = client.read_log("t", 11, 12, columns=["time"])["time"].to_pylist()[0]
        query = Query(since=datetime.fromtimestamp(at - 1e-4, UTC).isoformat())
        query.batch(node.address)
    assert payloads(query) == Counter(range(10, 30))


def test_a_batch_waits_for_enough_rows_or_long_enough(tmp_path):
    def stream(delay: str) -> LogStream:
        words = {"topics": "t", "pollSeconds": "0", "minRowsPerBatch": "10", "maxDelay": delay}
        return LogStream(read_options({**words, "nodes": node.address}))

    with running_node("--data", tmp_path, "--log", ">") as node:
        publish(node, 0, 6)
        patient, hasty, bounded = stream("3600"), stream("0"), stream("3600")
        bounded.prepareForTriggerAvailableNow()
        start = {"t": {"log": patient._ends(None)["t"].log_id, "from": 1, "next": 1, "cut": {}}}
        assert patient.latestOffset(start, ReadAllAvailable()) == start
        for other in (hasty, bounded):
            assert other.latestOffset(start, ReadAllAvailable())["t"]["next"] == 7
        publish(node, 6, 10)
        assert patient.latestOffset(start, ReadAllAvailable())["t"]["next"] == 11
        for one in (patient, hasty, bounded):
            one.stop()
