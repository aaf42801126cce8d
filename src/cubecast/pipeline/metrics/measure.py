"""`measure`: trace directories in, every metric out."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from cubecast.pipeline.metrics import tables
from cubecast.pipeline.metrics.results import Metrics, describe, histogram, metrics_of, quantiles
from cubecast.pipeline.metrics.source import Header, measurable, read_events, read_headers, require_pages
from cubecast.pipeline.metrics.traffic import traffic
from cubecast.pipeline.staging import Run, find_runs

SERVICE_DDL = "run string, transmission_time double, queued_control boolean"


def measure(spark: SparkSession, directories: Sequence[Path]) -> Metrics:
    """Every metric of every run in and below these directories. Raises TraceError with one clear line."""
    runs, refused = measurable(find_runs([Path(directory) for directory in directories]))
    return measure_runs(spark, runs, read_headers(runs), refused)


def measure_runs(
    spark: SparkSession,
    runs: Sequence[Run],
    headers: Sequence[Header],
    refused: Sequence[str] = (),
    tell: Callable[[str], None] = lambda text: None,
) -> Metrics:
    """Of runs that `measurable` let through."""
    try:
        return replace(measure_events(spark, read_events(spark, runs, headers), headers, tell), refused=refused)
    except Exception:
        # The footers were right, so perhaps a page is not. Spark tells that by a page of text, in classes of its own.
        require_pages(runs)
        raise


def measure_events(
    spark: SparkSession, events: DataFrame, headers: Sequence[Header], tell: Callable[[str], None] = lambda text: None
) -> Metrics:
    """Metrics of runs whose rows are in `events`, in the trace's columns."""
    began = time.perf_counter()
    service = [(h.run, h.transmission_time, h.queued_control) for h in headers if h.transmission_time]
    tell("counting packets")
    totals = {row.run: row.asDict() for row in traffic(events).collect()}
    stage = tables.stages(events, spark.createDataFrame(service, SERVICE_DDL))
    lasted = [(run, total["ended_at"] - total["began_at"]) for run, total in totals.items()]
    spans = spark.createDataFrame([(run, span or None) for run, span in lasted], "run string, span double")
    per_node = tables.nodes(stage, spans, [run for run, _, _ in service]).persist()
    spread = tables.values(stage)
    tell("measuring latencies, queues and load")
    distributions = describe(spread.unionByName(tables.node_values(per_node))).collect()
    tell("counting what nobody wanted, and the balance of load")
    _complete(totals, tables.counted(stage, per_node).collect())
    frames = {
        "histograms": histogram(spread.where(F.col("metric").isin(list(tables.COUNTED)))),
        "quantiles": quantiles(spread.where(F.col("metric").isin(list(tables.TIMED)))),
        "nodes": per_node,
    }
    return metrics_of(headers, totals, [row.asDict() for row in distributions], frames, time.perf_counter() - began)


def _complete(totals: dict[str, dict[str, Any]], counted: Sequence[Row]) -> None:
    """Adds to each run's traffic what else was counted, and the ratios."""
    for row in counted:
        whole = row.metric in tables.TOTALS and row.value is not None
        totals[row.run][row.metric] = int(row.value) if whole else row.value
    for total in totals.values():
        total |= {name: total.get(name) or 0 for name in tables.TOTALS}
        total |= tables.ratios(total)
