"""Two streaming queries in a Spark of its own, to be killed: a topic into Parquet, and its rows into another topic.

python -m support.spark_queries NODE DIRECTORY            until killed; says on standard output how far it came
python -m support.spark_queries NODE DIRECTORY finish     until everything that is there now was read and written
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.sources import ROOT

SOURCE, COPY = "in", "out"
MOST = 300
"""Rows of a batch: there is always another one to be killed in."""


def main() -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from cubecast.pipeline.session import LIGHT_JVM, spark_session
    from cubecast.spark import register

    address, place, *words = sys.argv[1:]

    def query(spark: SparkSession, name: str, kind: str, columns: tuple[str, ...]) -> StreamingQuery:
        rows = spark.readStream.format("cubecast").options(nodes=address, topics=SOURCE, maxRowsPerBatch=MOST).load()
        writer = rows.selectExpr(*columns).writeStream.format(kind).option("checkpointLocation", f"{place}/{name}-at")
        writer = writer.option("nodes", address) if kind == "cubecast" else writer.option("path", f"{place}/{name}")
        return (
            writer.trigger(availableNow=True) if words else writer.trigger(processingTime="50 milliseconds")
        ).start()

    spark = spark_session("local[2,4]", (("spark.sql.shuffle.partitions", "2"),), LIGHT_JVM)
    register(spark)
    queries = [
        query(spark, "rows", "parquet", ("payload", "source", "incarnation", "counter")),
        query(spark, "copy", "cubecast", (f"'{COPY}' AS topic", "payload")),
    ]
    told = [-1, -1]
    while any(one.isActive for one in queries):
        for number, one in enumerate(queries):
            one.awaitTermination(0.05)
            progress = one.lastProgress
            if progress is not None and progress["batchId"] > told[number]:
                told[number] = progress["batchId"]
                print("batch", number, told[number], flush=True)


class SparkLife:
    """One of a driver, with its Java and its workers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def line(self) -> str:
        """Empty when it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def kill(self) -> None:
        """Driver and Java at one moment; what they leave behind dies of it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_worker(self) -> bool:
        """One that a task of Spark's runs in."""
        daemons = {one for one, _ in self._python()}
        for one, parent in self._python():
            if parent in daemons:
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
                    return True
        return False

    def _python(self) -> Iterator[tuple[int, int]]:
        """Python processes of its session that serve Java, and their parents."""
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(") ")[2].split()
                if int(fields[3]) == self.process.pid and b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                    yield int(entry.name), int(fields[1])


@contextmanager
def spark_life(address: str, place: Path, *words: str) -> Iterator[SparkLife]:
    paths = os.pathsep.join([str(ROOT / "tests"), *sys.path])
    command = [sys.executable, "-m", "support.spark_queries", address, str(place), *words]
    with (place / "errors.txt").open("a") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": paths},
        )
    life = SparkLife(process)
    try:
        yield life
    finally:
        life.kill()
        assert process.stdout is not None
        process.stdout.close()


if __name__ == "__main__":
    main()
