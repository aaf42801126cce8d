"""DataFrames published on topics: each row once, whatever is repeated."""

from collections import Counter

import pyarrow as pa
import pytest

from cubecast import sync
from cubecast.errors import BadInput
from cubecast.log.index import HEADER
from cubecast.spark import register
from cubecast.spark.logs import read_task
from cubecast.spark.options import read_options, write_options
from cubecast.spark.sink import Stage, TopicStream
from cubecast.spark.source import LogReader
from support.certificates import certificates
from support.commands import cubecast, running_node

PATIENCE = 120


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    with running_node("--data", tmp_path_factory.mktemp("log"), "--log", ">") as node:
        yield node


def logged(node, topic: str) -> list[bytes]:
    with sync.connect(node.address) as client:
        return client.read_log(topic)["payload"].to_pylist()


def stream(node, stage, producer: str) -> TopicStream:
    options = {"nodes": node.address, "stageLocation": str(stage), "producer": producer}
    return TopicStream(write_options(options), ["topic", "payload"])


def rows(topic: str, start: int, stop: int) -> list[pa.RecordBatch]:
    payloads = [b"%d" % number for number in range(start, stop)]
    return [pa.record_batch([[topic] * len(payloads), payloads], names=["topic", "payload"])]


def test_a_table_is_published(spark, node, tmp_path):
    register(spark)
    frame = spark.range(1000).selectExpr(
        "concat('sink.', id % 3) AS topic",
        "cast(cast(id AS string) AS binary) AS payload",
        "map('by', 'ann') AS headers",
    )
    frame.write.format("cubecast").mode("append").option("nodes", node.address).save()
    found = [int(one) for part in range(3) for one in logged(node, f"sink.{part}")]
    assert sorted(found) == list(range(1000))
    with sync.connect(node.address) as client:
        headers = dict(client.read_log("sink.0", 1, 2)["headers"].to_pylist()[0])
    assert headers["by"] == "ann"
    assert headers[HEADER].endswith("#1")


def test_what_cannot_be_published_is_said_in_one_line(spark, node, tmp_path):
    register(spark)
    with pytest.raises(Exception, match="there is no column 'topic'"):
        spark.range(1).selectExpr("id AS payload").write.format("cubecast").mode("append").option(
            "nodes", node.address
        ).save()
    with pytest.raises(BadInput, match="name the producer"):
        TopicStream(write_options({"nodes": node.address, "stageLocation": str(tmp_path)}), ["topic", "payload"])
    sink = stream(node, tmp_path, "nulls")
    with pytest.raises(BadInput, match="1 rows have no payload"):
        sink.write(iter([pa.record_batch([["t"], pa.nulls(1, pa.binary())], names=["topic", "payload"])]))


def test_a_stream_of_files_goes_into_a_topic_once(spark, node, tmp_path):
    """Two queries one after the other, from the same checkpoint."""
    register(spark)
    for life in range(2):
        numbers = spark.range(100 * life, 100 * life + 100).selectExpr("cast(cast(id AS string) AS binary) AS payload")
        numbers.write.mode("append").parquet(str(tmp_path / "in"))
        source = spark.readStream.schema("payload binary").parquet(str(tmp_path / "in"))
        writer = source.selectExpr("'sink.stream' AS topic", "payload").writeStream.format("cubecast")
        writer = writer.option("nodes", node.address).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(PATIENCE)
        assert query.exception() is None
        assert sorted(map(int, logged(node, "sink.stream"))) == list(range(100 * life + 100))


def test_a_batch_that_is_committed_again_is_what_it_was(node, tmp_path):
    """Spark repeats it with its rows in another order, and in other files."""
    first = stream(node, tmp_path, "again")
    first.commit([first.write(iter(rows("again", 0, 50))), None, first.write(iter(rows("again", 50, 100)))], 0)
    for batch in range(2):
        again = stream(node, tmp_path, "again")
        again.commit([again.write(iter(rows("again", 50, 100))), again.write(iter(rows("again", 0, 50)))], batch)
    assert Counter(logged(node, "again")) == Counter([b"%d" % number for number in range(100)] * 2), "batches 0 and 1"
    assert not list(tmp_path.glob("rows-*")), "what is published needs no room"


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_commit_that_was_cut_short_goes_on(node, tmp_path, monkeypatch, after):
    """The driver dies while it publishes; another one commits the same batch, with the rows in another order."""
    topic, published = f"short.{after}", Stage.rows

    def dies(stage, manifest):
        for place, part in enumerate(published(stage, manifest)):
            if place == after:
                raise RuntimeError("killed")
            yield part

    pieces = [rows(topic, 100 * number, 100 * number + 100) for number in range(4)]
    first = stream(node, tmp_path, topic)
    staged = [first.write(iter(piece)) for piece in pieces]
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="killed"):
        patch.setattr(Stage, "rows", dies)
        first.commit(staged, 0)
    again = stream(node, tmp_path, topic)
    again.commit([again.write(iter(piece)) for piece in reversed(pieces)], 0)
    assert sorted(map(int, logged(node, topic))) == list(range(400))


def test_a_stage_that_is_gone_is_noticed(node, tmp_path):
    sink = stream(node, tmp_path / "one", "gone")
    sink.commit([sink.write(iter(rows("gone", 0, 10)))], 0)
    anew = stream(node, tmp_path / "two", "gone")
    with pytest.raises(BadInput, match="has published on gone before, and its stage is gone"):
        anew.commit([anew.write(iter(rows("gone", 0, 10)))], 0)
    assert len(logged(node, "gone")) == 10


def test_files_prove_who_writes_and_who_reads(tmp_path):
    """Over TLS, with a token: Spark is told paths, and sees no secret."""
    tls, token = certificates().node, tmp_path / "ann.token"
    rule = cubecast("token", "new", "ann", "--out", token).stdout
    (tmp_path / "policy.toml").write_text(rule + 'publish = ["safe"]\nsubscribe = ["safe"]\n')
    words = ("--tls-cert", tls.cert, "--tls-key", tls.key, "--tls-ca", tls.ca, "--policy", tmp_path / "policy.toml")
    with running_node("--data", tmp_path / "log", "--log", ">", *words) as node:
        proof = {"nodes": node.address, "tlsCa": str(tls.ca), "tokenFile": str(token)}
        sink = TopicStream(
            write_options({**proof, "stageLocation": str(tmp_path / "stage"), "producer": "ann"}), ["topic", "payload"]
        )
        sink.commit([sink.write(iter(rows("safe", 0, 20)))], 0)
        options = read_options({**proof, "topics": "safe"})
        (task,) = LogReader(options).partitions()
        read = [int(one) for batch in read_task(options, task) for one in batch.column("payload").to_pylist()]
        assert read == list(range(20))
        unknown = read_options({"nodes": node.address, "tlsCa": str(tls.ca), "topics": "safe"})
        with pytest.raises(BadInput, match="asks for a token"):
            LogReader(unknown).partitions()
