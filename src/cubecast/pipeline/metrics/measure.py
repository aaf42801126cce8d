"""`measure`: trace directories in, every metric out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cubecast.pipeline.metrics import tables
from cubecast.pipeline.metrics.headers import Header
from cubecast.pipeline.metrics.source import read_events, read_headers
from cubecast.pipeline.metrics.summary import STATISTICS, describe, histogram, over_runs
from cubecast.pipeline.metrics.traffic import traffic
from cubecast.pipeline.outputs import require_new
from cubecast.pipeline.staging import find_runs


@dataclass(frozen=True)
class Metrics:
    """Small tables in memory, the per-node and histogram tables as frames."""

    runs: list[dict[str, Any]]
    """Per run: header, totals, and one `{count, mean, std, ci99, min, p50, p90, p99, max}` per distribution."""
    over_runs: list[dict[str, Any]]
    """Per setting and metric, over runs that differ in nothing but their seed."""
    frames: dict[str, DataFrame]
    wall_seconds: float

    def to_json(self) -> dict[str, Any]:
        return {"runs": self.runs, "over_runs": self.over_runs, "wall_seconds": round(self.wall_seconds, 3)}

    def write(self, directory: Path) -> None:
        """Every table as Parquet under `directory`, which must be new or empty, one folder each."""
        require_new(directory)
        for name, frame in self.frames.items():
            frame.write.parquet(str(directory / name))


def measure(spark: SparkSession, directories: Sequence[Path]) -> Metrics:
    """Every metric of every run in and below these directories. Raises TraceError with one clear line."""
    runs = find_runs([Path(directory) for directory in directories])
    headers = read_headers(runs)
    return measure_events(spark, read_events(spark, runs, headers), headers)


def measure_events(spark: SparkSession, events: DataFrame, headers: Sequence[Header]) -> Metrics:
    """Metrics of runs whose rows are in `events`, in the trace's columns."""
    began = time.perf_counter()
    service = [(h.run, h.transmission_time) for h in headers if h.transmission_time]
    stage = tables.stages(events, spark.createDataFrame(service, "run string, transmission_time double"))
    counts = traffic(events).persist()
    per_node = tables.nodes(stage, tables.spans(counts)).persist()
    spread = tables.values(stage)
    distributions = describe(spread.unionByName(tables.node_values(per_node))).persist()
    totals = tables.totals(stage, counts, per_node).persist()
    settings = spark.createDataFrame([(h.run, h.setting) for h in headers], "run string, setting string")
    summary = over_runs(spark, one_value_per_run(distributions, totals).join(settings, on="run", how="inner"))
    frames = {
        "totals": totals,
        "distributions": distributions,
        "histograms": histogram(spread.where(F.col("metric").isin(list(tables.COUNTED)))),
        "nodes": per_node,
        "over_runs": summary.persist(),
    }
    runs = _per_run(headers, totals, distributions)
    across = [row.asDict() for row in frames["over_runs"].orderBy("setting", "metric").collect()]
    return Metrics(runs, across, frames, time.perf_counter() - began)


def one_value_per_run(distributions: DataFrame, totals: DataFrame) -> DataFrame:
    """What is averaged over runs: the mean of every distribution, and every total. → run, metric, value"""
    names = (*tables.TOTALS, *tables.RATIOS)
    means = distributions.select("run", "metric", F.col("mean").alias("value"))
    counted = totals.select("run", *(F.col(name).cast("double").alias(name) for name in names))
    return means.unionByName(counted.unpivot(["run"], list(names), "metric", "value"))


def _per_run(headers: Sequence[Header], totals: DataFrame, distributions: DataFrame) -> list[dict[str, Any]]:
    counted = {row.run: row.asDict() for row in totals.collect()}
    spread: dict[str, dict[str, Any]] = {}
    for row in distributions.orderBy("run", "metric").collect():
        spread.setdefault(row.run, {})[row.metric] = {name: row[name] for name in STATISTICS}
    return [
        {**header.to_json(), **counted.get(header.run, {}), **spread.get(header.run, {})}
        for header in sorted(headers, key=lambda header: header.run)
    ]
