"""Topics into Parquet and DataFrames into topics: rows a second, beside what the same run does without the other half.

    python -m bench.spark_streams --rows 1000000            two cores that have nothing else to do
    python -m bench.spark_streams --rows 50000              to see that it works

Source: a node's log, messages of 64 bytes, into Parquet with `availableNow`. The first query of a session starts Python
processes and meets a cold Java, so it is shown with that start, then again in the warm session, then at its steady
rate: the median of micro-batches behind the first. Yardsticks: the log read through a connection without Spark, Spark
writing as many rows that it makes itself, and Spark copying the Parquet files that the source wrote. Sink: a table into
a topic; yardstick: a client that publishes as much. Beside each rate: seconds of processor that it took, by program,
which say on a busy machine what the rate would be on an idle one.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.processes import seconds_by_program
from cubecast import sync
from cubecast.pipeline.session import spark_session
from cubecast.spark import register

SIZE = 64
AT_ONCE = 10_000
BATCHES = 6
"""Micro-batches of the query whose steady rate is taken."""


@contextmanager
def node(directory: Path) -> Iterator[str]:
    words = [sys.executable, "-m", "cubecast", "node", "--json", "--data", str(directory), "--log", ">"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"]
    finally:
        process.terminate()
        process.wait(60)


def timed(what: str, rows: int, work: Callable[[], object]) -> None:
    used, began = seconds_by_program(), perf_counter()
    work()
    show(what, rows / (perf_counter() - began), used)


def show(what: str, rate: float, before: dict[str, float]) -> None:
    used = {name: seconds - before.get(name, 0.0) for name, seconds in seconds_by_program().items()}
    told = ", ".join(f"{name} {seconds:.1f}" for name, seconds in sorted(used.items()) if seconds >= 0.05)
    print(f"{what:48}{rate:>12,.0f} rows/s   processor: {told} s", flush=True)


def publish(address: str, topic: str, rows: int) -> None:
    with sync.connect(address) as client:
        for begin in range(0, rows, AT_ONCE):
            client.publish_batch(topic, [b"x" * SIZE] * min(AT_ONCE, rows - begin))
        client.publish(topic, b"", wait="durable")


def read(address: str, rows: int) -> None:
    with sync.connect(address) as client:
        assert sum(batch.num_rows for batch in client.log_batches("in")) >= rows


def stream(spark: SparkSession, address: str, place: Path, **options: object) -> StreamingQuery:
    source = spark.readStream.format("cubecast").options(nodes=address, topics="in", **options).load()
    writer = source.writeStream.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
    query = writer.start(str(place / "out"), format="parquet")
    query.awaitTermination()
    return query


def steady(spark: SparkSession, address: str, place: Path, rows: int) -> None:
    used = seconds_by_program()
    query = stream(spark, address, place, maxRowsPerBatch=rows // BATCHES + 1)
    rates = [one["numInputRows"] / one["durationMs"]["triggerExecution"] * 1000 for one in query.recentProgress[1:]]
    show("source: the steady rate of micro-batches", median(rates), used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    given = parser.parse_args()
    rows = given.rows
    spark = spark_session()
    register(spark)
    with tempfile.TemporaryDirectory() as name, node(Path(name) / "log") as address:
        place = Path(name)
        made = spark.range(rows).selectExpr("'out' AS topic", f"cast(repeat('x', {SIZE}) AS binary) AS payload")
        made.limit(1).write.parquet(str(place / "warm"))
        timed("a client publishes", rows, lambda: publish(address, "in", rows))
        timed("a client reads the log, without Spark", rows, lambda: read(address, rows))
        timed("Spark writes rows of its own to Parquet", rows, lambda: made.write.parquet(str(place / "own")))
        timed("source: into Parquet, with its start", rows, lambda: stream(spark, address, place / "first"))
        assert spark.read.parquet(str(place / "first/out")).count() == rows + 1
        timed("source: another query of the session", rows, lambda: stream(spark, address, place / "second"))
        steady(spark, address, place / "steady", rows)
        copied = spark.read.parquet(str(place / "second/out"))
        timed("Spark copies these files", rows, lambda: copied.write.parquet(str(place / "copied")))
        sink = made.write.format("cubecast").mode("append").option("nodes", address)
        timed("sink: a table into a topic, with its start", rows, sink.save)
        timed("sink: another one", rows, sink.save)
        table = spark.read.format("cubecast").option("nodes", address).option("topics", "out")
        assert table.option("columns", "offset").load().count() == 2 * rows
    spark.stop()


if __name__ == "__main__":
    main()
