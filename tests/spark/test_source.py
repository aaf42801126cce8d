"""Topics of a node in a process of its own, as tables and as streams."""

import re
from datetime import timedelta

import pytest

from cubecast import sync
from cubecast.spark import register
from support.commands import running_node
from support.sources import ROOT

PATIENCE = 120


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    with running_node("--data", tmp_path_factory.mktemp("log"), "--log", ">") as node:
        yield node


@pytest.fixture
def format_(spark, node):
    """A reader or a stream reader, told where the node is."""
    register(spark)
    return lambda reader, **options: reader.format("cubecast").options(nodes=node.address, pollSeconds=0, **options)


def publish(node, topic: str, start: int, stop: int) -> None:
    with sync.connect(node.address) as client:
        client.publish_batch(topic, [b"%d" % number for number in range(start, stop)], wait="durable")


def numbers(rows) -> list[int]:
    return [int(bytes(row.payload)) for row in rows]


def test_a_table_holds_what_the_log_has(spark, node, format_):
    publish(node, "table.a", 0, 2500)
    with sync.connect(node.address) as client:
        client.publish("table.b", "text", headers={"by": "ann"}, wait="durable")
        told = {one.topic: one for one in client.log_topics()}
        times = client.read_log("table.b")["time"].to_pylist()
    table = format_(spark.read, pattern="table.>", rowsPerPartition=1000).load()
    assert table.rdd.getNumPartitions() == 3  # the one row of table.b has no task of its own
    rows = table.collect()
    assert sorted(numbers(row for row in rows if row.topic == "table.a")) == list(range(2500))
    (b,) = [row for row in rows if row.topic == "table.b"]
    assert (b.offset, b.headers, b.log) == (1, {"by": "ann"}, told["table.b"].log_id)
    assert table.where("topic = 'table.b'").selectExpr("unix_micros(time)").first()[0] == round(times[0] * 1e6)
    part = format_(spark.read, topics="table.a", since=2001, columns="counter,offset").load()
    assert part.columns == ["counter", "offset"]
    assert sorted(row.offset for row in part.collect()) == list(range(2001, 2501))
    assert format_(spark.read, topics="table.never").load().count() == 0


def test_filters_narrow_what_is_read(spark, node, format_):
    """Topics, offsets and times are looked up in the log's index; the rest stays with Spark."""
    for topic in ("pushed.a", "pushed.b", "other.c"):
        publish(node, topic, 0, 300)
    table = format_(spark.read, pattern=">", rowsPerPartition=50).load()
    few = table.where("topic IN ('pushed.a', 'pushed.b') AND topic LIKE 'pushed%' AND offset > 250 AND offset <= 290")
    assert few.rdd.getNumPartitions() == 2
    assert sorted(numbers(few.collect())) == sorted([*range(250, 290)] * 2)
    late = table.where("topic = 'other.c'").agg({"time": "max"}).first()[0]
    assert table.where("topic = 'other.c'").where(table.time > late + timedelta(seconds=1)).rdd.getNumPartitions() <= 1
    assert table.where("topic = 'other.c'").where(table.time <= late).count() == 300


def test_headers_are_asked_where_the_log_is(spark, node, format_):
    with sync.connect(node.address) as client:
        for number in range(10):
            client.publish("priced", str(number), headers={"price": number}, wait="durable")
    some = format_(spark.read, topics="priced", where="price >= 7", columns="payload").load()
    assert sorted(numbers(some.collect())) == [7, 8, 9]


def test_a_wrong_option_is_named(spark, format_):
    with pytest.raises(Exception, match="since: write beginning"):
        format_(spark.read, topics="a", since="yesterday").load().collect()
    with pytest.raises(Exception, match="use readStream"):
        format_(spark.read, topics="a", since="now").load().collect()


def test_a_stream_goes_on_behind_its_checkpoint(spark, node, format_, tmp_path):
    """Two queries one after the other, each reading what is available; topics begin meanwhile."""
    out, expected = str(tmp_path / "rows"), []
    for life in range(2):
        for topic in ["stream.a", "stream.b"][: 1 + life]:
            publish(node, topic, 100 * life, 100 * life + 100)
            expected += [(topic, number) for number in range(100 * life, 100 * life + 100)]
        stream = format_(spark.readStream, pattern="stream.>", maxRowsPerBatch=70, rowsPerPartition=50).load()
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(out)
        assert query.awaitTermination(PATIENCE)
        assert query.exception() is None
        rows = spark.read.parquet(out).collect()
        assert sorted((row.topic, int(bytes(row.payload))) for row in rows) == sorted(expected)
    assert query.lastProgress["batchId"] >= 4, "maxRowsPerBatch made several batches of it"


def test_the_program_in_the_document(spark, node, tmp_path, capsys):
    text = (ROOT / "docs" / "spark-streams.md").read_text()
    program = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    for there, here in (("127.0.0.1:7000", node.address), ('"out/', f'"{tmp_path}/')):
        assert there in program
        program = program.replace(there, here)
    exec(program, {"__name__": "document"})  # in the suite's session: starting another one takes seconds
    assert capsys.readouterr().out == "10\n1000\n1000\n"
