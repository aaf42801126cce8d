"""Topics into Parquet and DataFrames into topics: rows a second, beside what the same run does without the other half.

    python -m bench.spark_streams --rows 1000000            two cores that have nothing else to do
    python -m bench.spark_streams --rows 50000              to see that it works

Source: a node's log, messages of 64 bytes, into Parquet with `availableNow`; yardsticks: the log read through a
connection without Spark, and Spark writing as many rows that it makes itself. Sink: a table into a topic; yardstick: a
client that publishes as much.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from pyspark.sql import SparkSession

from cubecast import sync
from cubecast.pipeline.session import spark_session
from cubecast.spark import register

SIZE = 64
AT_ONCE = 10_000


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
    began = perf_counter()
    work()
    taken = perf_counter() - began
    print(f"{what:44}{rows / taken:>14,.0f} rows/s", flush=True)


def publish(address: str, topic: str, rows: int) -> None:
    with sync.connect(address) as client:
        for begin in range(0, rows, AT_ONCE):
            client.publish_batch(topic, [b"x" * SIZE] * min(AT_ONCE, rows - begin))
        client.publish(topic, b"", wait="durable")


def read(address: str, rows: int) -> None:
    with sync.connect(address) as client:
        assert sum(batch.num_rows for batch in client.log_batches("in")) >= rows


def stream(spark: SparkSession, address: str, place: Path) -> None:
    source = spark.readStream.format("cubecast").option("nodes", address).option("topics", "in").load()
    writer = source.writeStream.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
    writer.start(str(place / "out"), format="parquet").awaitTermination()


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
        timed("source: the topic into Parquet", rows, lambda: stream(spark, address, place))
        assert spark.read.parquet(str(place / "out")).count() == rows + 1
        sink = made.write.format("cubecast").mode("append").option("nodes", address)
        timed("sink: a table into a topic", rows, sink.save)
        table = spark.read.format("cubecast").option("nodes", address).option("topics", "out")
        assert table.option("columns", "offset").load().count() == rows
    spark.stop()


if __name__ == "__main__":
    main()
