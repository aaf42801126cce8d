"""The judges and the metrics for notebooks and jobs: traces as DataFrames of a session that is there already.

    events = spark.read.format("iceberg").load("lake.trace")
    verification = verify(spark, events, headers=[json.loads(header)])
    verdicts(spark, verification).writeTo("lake.verdicts").append()

Up to two million rows are brought to this process, which works in every kind of session, Spark Connect too. More are
laid out by Spark below `staging`, a directory that driver and executors share, and judged there; that needs a classic
session.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from cubecast.errors import BadInput
from cubecast.pipeline.in_memory import ROWS_IN_MEMORY
from cubecast.pipeline.metrics.in_memory.measure import measure_in_memory
from cubecast.pipeline.metrics.measure import measure
from cubecast.pipeline.metrics.results import Metrics
from cubecast.pipeline.metrics.source import measurable, read_headers
from cubecast.pipeline.staging import find_runs
from cubecast.pipeline.verdict import Verification
from cubecast.pipeline.verify import verify as verify_directories
from cubecast.trace.schema import COLUMN_NAMES, RUN_FILE, SCHEMA_VERSION

Header = Mapping[str, Any]
"""What a run's run.json says."""
ORDER = ("node", "incarnation", "seq")


def verify(
    spark: SparkSession,
    events: DataFrame | str | Path | Sequence[str | Path],
    headers: Sequence[Header] | None = None,
    properties: Sequence[str] | None = None,
    staging: str | Path | None = None,
) -> Verification:
    """Judge traces: a DataFrame in the trace's columns, or directories.

    `headers` say what each run promised. Without them `properties` are decided, of every run in the DataFrame.
    """
    if not isinstance(events, DataFrame):
        return verify_directories(spark, _directories(events), properties)
    with _laid_out(events, headers, properties, staging) as (places, is_small):
        return verify_directories(None if is_small else _classic(spark), places, properties)


def metrics(
    spark: SparkSession,
    events: DataFrame | str | Path | Sequence[str | Path],
    headers: Sequence[Header] | None = None,
    staging: str | Path | None = None,
) -> Metrics:
    """Measure traces: a DataFrame in the trace's columns, or directories."""
    if not isinstance(events, DataFrame):
        return measure(spark, _directories(events))
    with _laid_out(events, headers, (), staging) as (places, is_small):
        if not is_small:
            return measure(_classic(spark), places)
        runs, refused = measurable(find_runs(places))
        return measure_in_memory(runs, read_headers(runs), refused, lambda text: None)


def verdicts(spark: SparkSession, verification: Verification) -> DataFrame:
    """A row per run and property, for a table of any format."""
    return spark.createDataFrame(verification.tables()["verdicts"])


def witnesses(spark: SparkSession, verification: Verification) -> DataFrame:
    """A row per finding that counts."""
    return spark.createDataFrame(verification.tables()["witnesses"])


def _directories(events: str | Path | Sequence[str | Path]) -> list[Path]:
    return [Path(events)] if isinstance(events, str | Path) else [Path(one) for one in events]


def _classic(spark: SparkSession) -> SparkSession:
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise BadInput(
            f"more than {ROWS_IN_MEMORY:,} rows need a classic session: Spark Connect cannot run the judge's passes"
        )
    return spark


@contextmanager
def _laid_out(
    events: DataFrame,
    headers: Sequence[Header] | None,
    properties: Sequence[str] | None,
    staging: str | Path | None,
) -> Iterator[tuple[list[Path], bool]]:
    """As the judge reads them: a directory for each run, and in it each node's rows in one file, in order."""
    missing = [name for name in ("run", *ORDER, "kind") if name not in events.columns]
    if missing:
        raise BadInput(f"this DataFrame is no trace: there is no column {missing[0]!r}; a trace has {COLUMN_NAMES}")
    place = Path(tempfile.mkdtemp(dir=staging, prefix="cubecast-traces-"))
    try:
        some = events.limit(ROWS_IN_MEMORY + 1).toArrow()
        is_small = some.num_rows <= ROWS_IN_MEMORY
        known = list(_headers(events, headers, properties))
        for number, header in enumerate(known):
            directory = place / f"run-{number:05d}"
            directory.mkdir()
            (directory / RUN_FILE).write_text(json.dumps(header))
            _write(some if is_small else events, header["run"], directory)
        yield [place / f"run-{number:05d}" for number in range(len(known))], is_small
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _headers(
    events: DataFrame, headers: Sequence[Header] | None, properties: Sequence[str] | None
) -> Iterator[dict[str, Any]]:
    if headers is not None:
        yield from ({"schema_version": SCHEMA_VERSION, **one} for one in headers)
        return
    if properties is None:
        raise BadInput("say what each run promised, headers=[…] with the content of its run.json, or properties=[…]")
    for row in events.select("run").distinct().orderBy("run").collect():
        promises = list(properties)
        yield {"run": row.run, "protocol": "unknown", "promises": promises, "schema_version": SCHEMA_VERSION}


def _write(rows: pa.Table | DataFrame, run: str, directory: Path) -> None:
    if isinstance(rows, pa.Table):
        table = rows.filter(pa.compute.equal(rows.column("run"), run))
        pq.write_table(table.sort_by([(name, "ascending") for name in ORDER]), directory / "part-00000.parquet")
        return
    ordered = rows.where(col("run") == run).repartition(col("node")).sortWithinPartitions(*ORDER)
    ordered.write.parquet(str(directory / "rows"))
    for path in (directory / "rows").glob("*.parquet"):
        path.rename(directory / path.name)
    shutil.rmtree(directory / "rows")
