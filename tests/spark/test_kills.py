"""Nodes killed, and logs replaced, under a stream that reads them: no row is lost, none comes twice, or it is told.

The checkpoint is all that is kept between batches.
"""

import shutil

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from cubecast import sync
from cubecast.api.sync import SyncClient
from cubecast.errors import BadInput
from cubecast.spark.options import read_options
from cubecast.spark.stream import LogStream
from support.commands import running_node

pytestmark = pytest.mark.spark

MOST_LIVES = 6
"""A kill takes nothing away when the disk was faster."""


class Query:
    """What Spark does with a stream, in this process: a checkpoint, and the rows that were written."""

    def __init__(self) -> None:
        self.checkpoint = None
        self.rows: list[tuple[int, int, int, bytes]] = []

    def batch(self, address: str) -> None:
        stream = LogStream(read_options({"nodes": address, "topics": "t", "pollSeconds": "0"}))
        try:
            start = stream.initialOffset() if self.checkpoint is None else self.checkpoint
            self.checkpoint = stream.latestOffset(start, ReadAllAvailable())
            for part in stream.partitions(start, self.checkpoint):
                self.rows += [row for batch in stream.read(part) for row in names(batch)]
        finally:
            stream.stop()


def names(batch):
    return list(
        zip(*(batch.column(name).to_pylist() for name in ("offset", "incarnation", "counter", "payload")), strict=True)
    )


def lives_of_a_node(directory) -> tuple[list, list, int]:
    """What the query read, what the log has, and how many offsets the kills took away."""
    query, taken_away, life = Query(), 0, 0
    while not taken_away and life < MOST_LIVES:
        life += 1
        with (
            running_node("--data", directory, "--log", ">") as node,
            sync.connect(node.address, patience=0.1) as client,
        ):
            client.publish_batch("t", [f"{life}"] * 200, wait="durable")
            query.batch(node.address)
            client.publish_batch("t", [f"{life} late"] * 50, wait="stable")
            (told,) = client.log_topics()
            query.batch(node.address)
            node.kill()
        with running_node("--data", directory, "--log", ">") as node, sync.connect(node.address) as client:
            taken_away += max(0, told.last - client.log_topics()[0].last)
            client.publish_batch("t", [f"{life} after"] * 200, wait="durable")
            query.batch(node.address)
            log = [row for batch in client.log_batches("t") for row in names(batch)]
    return query.rows, log, taken_away


def test_no_row_is_lost_or_doubled(tmp_path):
    rows, log, taken_away = lives_of_a_node(tmp_path)
    assert rows == log
    assert taken_away, "no kill took anything away: nothing was tried"


@pytest.mark.slow
@pytest.mark.interpreted
def test_a_stream_that_names_the_last_offset_is_found_out(tmp_path, monkeypatch):
    honest = SyncClient.log_topics

    def lying(client, timeout=5.0):
        return [one._replace(durable=one.last) for one in honest(client, timeout)]

    monkeypatch.setattr(SyncClient, "log_topics", lying)
    rows, log, taken_away = lives_of_a_node(tmp_path)
    assert taken_away
    assert rows != log


def test_another_log_under_the_same_name_is_refused(tmp_path):
    """A new directory, and an older copy put back: offsets of the checkpoint say nothing there."""
    data, copy, query = tmp_path / "data", tmp_path / "copy", Query()
    with running_node("--data", data, "--log", ">") as node:
        publish(node, 10)
        assert node.stop() == 0
    shutil.copytree(data, copy)
    with running_node("--data", data, "--log", ">") as node:
        publish(node, 10)
        query.batch(node.address)
    assert [row[0] for row in query.rows] == list(range(1, 21))
    absent = r"does not have the last message that was read \(0\.1\.10\)"
    other = r"message 0\.1\.10 of log [0-9a-f]{32} is not the one this query has read"
    for told in (absent, other):
        with running_node("--data", tmp_path / "new", "--log", ">") as node:
            publish(node, 30, b"y")
            with pytest.raises(BadInput, match=told):
                query.batch(node.address)
            assert node.stop() == 0
    older = pytest.raises(BadInput, match="has read up to offset 20, and the log ends with 10")
    with running_node("--data", copy, "--log", ">") as node, older:
        query.batch(node.address)
    assert len(query.rows) == 20


def publish(node, many: int, content: bytes = b"x") -> None:
    with sync.connect(node.address) as client:
        client.publish_batch("t", [content] * many, wait="durable")
