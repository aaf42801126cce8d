"""`measure`: trace directories in, every metric out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from cubecast.pipeline.metrics import tables
from cubecast.pipeline.metrics.headers import Header
from cubecast.pipeline.metrics.source import read_events, read_headers
from cubecast.pipeline.metrics.summary import STATISTICS, describe, histogram, over_runs, quantiles
from cubecast.pipeline.metrics.traffic import traffic
from cubecast.pipeline.outputs import require_new
from cubecast.pipeline.staging import find_runs

TOTALS_DDL = ", ".join(
    ("run string", *(f"{name} bigint" for name in tables.TOTALS), *(f"{name} double" for name in tables.RATIOS))
)
DISTRIBUTIONS_DDL = ", ".join(
    ("run string, metric string, count bigint", *(f"{name} double" for name in STATISTICS if name != "count"))
)
OVER_RUNS_DDL = (
    "setting string, metric string, runs bigint, mean double, std double, ci99 double, min double, max double"
)

SERVICE_DDL = "run string, transmission_time double, queued_control boolean"


@dataclass(frozen=True)
class Metrics:
    """Small tables in memory, the longer ones as frames."""

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
    service = [(h.run, h.transmission_time, h.queued_control) for h in headers if h.transmission_time]
    stage = tables.stages(events, spark.createDataFrame(service, SERVICE_DDL))
    totals = {row.run: row.asDict() for row in traffic(events).collect()}
    lasted = [(run, total["ended_at"] - total["began_at"]) for run, total in totals.items()]
    spans = spark.createDataFrame([(run, span or None) for run, span in lasted], "run string, span double")
    per_node = tables.nodes(stage, spans, [run for run, _, _ in service]).persist()
    spread = tables.values(stage)
    distributions = describe(spread.unionByName(tables.node_values(per_node))).collect()
    _complete(totals, tables.counted(stage, per_node).collect())
    frames = {
        "totals": spark.createDataFrame([_in_order(total) for total in totals.values()], TOTALS_DDL),
        "distributions": spark.createDataFrame(distributions, DISTRIBUTIONS_DDL),
        "histograms": histogram(spread.where(F.col("metric").isin(list(tables.COUNTED)))),
        "quantiles": quantiles(spread.where(F.col("metric").isin(list(tables.TIMED)))),
        "nodes": per_node,
    }
    settings = spark.createDataFrame([(h.run, h.setting) for h in headers], "run string, setting string")
    single = one_value_per_run(frames["distributions"], frames["totals"]).join(settings, on="run", how="inner")
    across = over_runs(spark, single, len(headers)).orderBy("setting", "metric").collect()
    frames["over_runs"] = spark.createDataFrame(across, OVER_RUNS_DDL)
    runs = _per_run(headers, totals, distributions)
    return Metrics(runs, [row.asDict() for row in across], frames, time.perf_counter() - began)


def one_value_per_run(distributions: DataFrame, totals: DataFrame) -> DataFrame:
    """What is averaged over runs: the mean of every distribution, and every total. → run, metric, value"""
    names = (*tables.TOTALS, *tables.RATIOS)
    means = distributions.select("run", "metric", F.col("mean").alias("value"))
    counted = totals.select("run", *(F.col(name).cast("double").alias(name) for name in names))
    return means.unionByName(counted.unpivot(["run"], list(names), "metric", "value"))


def _complete(totals: dict[str, dict[str, Any]], counted: Sequence[Row]) -> None:
    """Adds to each run's traffic what else was counted, and the ratios."""
    for row in counted:
        whole = row.metric in tables.TOTALS and row.value is not None
        totals[row.run][row.metric] = int(row.value) if whole else row.value
    for total in totals.values():
        total |= {name: total.get(name) or 0 for name in tables.TOTALS}
        total |= tables.ratios(total)


def _in_order(total: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(total.get(name) for name in ("run", *tables.TOTALS, *tables.RATIOS))


def _per_run(
    headers: Sequence[Header], totals: dict[str, dict[str, Any]], distributions: Sequence[Row]
) -> list[dict[str, Any]]:
    spread: dict[str, dict[str, Any]] = {}
    for row in sorted(distributions, key=lambda row: row.metric):
        spread.setdefault(row.run, {})[row.metric] = {name: row[name] for name in STATISTICS}
    return [
        {**header.to_json(), **totals.get(header.run, {}), **spread.get(header.run, {})}
        for header in sorted(headers, key=lambda header: header.run)
    ]
