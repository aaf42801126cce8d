"""What a measurement gives, however it was made: small tables in memory, the longer ones as they were computed; from
many values to the numbers a table prints.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cubecast.pipeline.metrics import tables
from cubecast.pipeline.metrics.source import Header
from cubecast.pipeline.staging import require_new

# Student's t for whole degrees of freedom, exact in closed form: one number per sample size needs no library.


def student_within(t: float, degrees: int) -> float:
    """Probability that |T| ≤ t (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = total = cosine if odd else 1.0
    for k in range(3 if odd else 2, degrees, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    if odd:
        return 2 / math.pi * (angle + (sine * total if degrees > 1 else 0.0))
    return sine * total


def student_quantile(degrees: int, level: float) -> float:
    """The t with P(|T| ≤ t) = level, by bisection."""
    low, high = 0.0, 1.0
    while student_within(high, degrees) < level:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_within(middle, degrees) < level else (low, middle)
    return high


LEVEL = 0.99
NORMAL_QUANTILE = 2.5758293035489004
"""Half of what lies beyond ±this many standard deviations is (1 − LEVEL) / 2."""

PERCENTILES = (("p50", 0.50), ("p90", 0.90), ("p99", 0.99))
RANK_ACCURACY = 10_000
"""Percentiles are observed values whose rank is right to one part in this many."""

STATISTICS = ("count", "mean", "std", "ci99", "min", *(name for name, _ in PERCENTILES), "max")


def describe(values: DataFrame) -> DataFrame:
    """Distribution of each metric in each run. `values`: run, metric, value.

    `std` is the sample standard deviation; `ci99` is half the width of the mean's 99 % confidence interval, from the
    normal distribution, as if the values were independent (those of one run rarely are: `over_runs` is the safe one).

    → run, metric, count, mean, std, ci99, min, p50, p90, p99, max
    """
    ranks = [rank for _, rank in PERCENTILES]
    return (
        values.select("run", "metric", "value")
        .groupBy("run", "metric")
        .agg(
            F.count("value").alias("count"),
            F.avg("value").alias("mean"),
            F.stddev_samp("value").alias("std"),
            F.min("value").alias("min"),
            F.percentile_approx("value", ranks, RANK_ACCURACY).alias("ranked"),
            F.max("value").alias("max"),
        )
        .withColumn("ci99", NORMAL_QUANTILE * F.col("std") / F.sqrt("count"))
        .withColumns({name: F.col("ranked")[i] for i, (name, _) in enumerate(PERCENTILES)})
        .select("run", "metric", *STATISTICS)
    )


def histogram(values: DataFrame) -> DataFrame:
    """How often each value occurs, for metrics that count things. → run, metric, value, count, share"""
    counted = values.select("run", "metric", "value").groupBy("run", "metric", "value").agg(F.count("*").alias("count"))
    totals = counted.groupBy("run", "metric").agg(F.sum("count").alias("total"))
    return counted.join(totals, on=["run", "metric"], how="inner").select(
        "run", "metric", "value", "count", (F.col("count") / F.col("total")).alias("share")
    )


def quantiles(values: DataFrame) -> DataFrame:
    """The curve of each distribution, in hundredths from the least value to the greatest. → run, metric, rank, value"""
    return (
        values.select("run", "metric", "value")
        .groupBy("run", "metric")
        .agg(F.percentile_approx("value", [step / 100 for step in range(101)], RANK_ACCURACY).alias("ranked"))
        .select("run", "metric", F.posexplode("ranked").alias("step", "value"))
        .select("run", "metric", (F.col("step") / 100).alias("rank"), "value")
    )


def over_runs(values: Mapping[tuple[str, str], Sequence[float]]) -> list[dict[str, Any]]:
    """(setting, metric) → one value per run: what they say together, by setting and metric.

    `ci99` is half the width of the mean's 99 % confidence interval, by Student's t over independent runs; None for a
    single run. A few numbers per run: the driver sums them up, a job would take longer to plan than to run.

    → setting, metric, runs, mean, std, ci99, min, max
    """
    return [_over_runs(setting, metric, found) for (setting, metric), found in sorted(values.items())]


def _over_runs(setting: str, metric: str, found: Sequence[float]) -> dict[str, Any]:
    runs = len(found)
    std = stdev(found) if runs > 1 else None
    return {
        "setting": setting,
        "metric": metric,
        "runs": runs,
        "mean": fmean(found),
        "std": std,
        "ci99": None if std is None else _student(runs - 1) * std / math.sqrt(runs),
        "min": min(found),
        "max": max(found),
    }


@cache
def _student(degrees: int) -> float:
    return student_quantile(degrees, LEVEL)


_TOTALS = pa.schema(
    [
        ("run", pa.string()),
        *((name, pa.int64()) for name in tables.TOTALS),
        *((name, pa.float64()) for name in tables.RATIOS),
    ]
)
_DISTRIBUTIONS = pa.schema(
    [
        *(("run", pa.string()), ("metric", pa.string()), ("count", pa.int64())),
        *((name, pa.float64()) for name in STATISTICS if name != "count"),
    ]
)
_OVER_RUNS = pa.schema(
    [
        *(("setting", pa.string()), ("metric", pa.string()), ("runs", pa.int64())),
        *((name, pa.float64()) for name in ("mean", "std", "ci99", "min", "max")),
    ]
)


@dataclass(frozen=True)
class Metrics:
    """Figures of any number of runs."""

    runs: list[dict[str, Any]]
    """Per run: header, totals, and one `{count, mean, std, ci99, min, p50, p90, p99, max}` per distribution."""
    over_runs: list[dict[str, Any]]
    """Per setting and metric, over runs that differ in nothing but their seed."""
    frames: Mapping[str, DataFrame | pa.Table]
    wall_seconds: float
    refused: Sequence[str] = ()
    """Why other runs are not among them; each reason names its file."""

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "over_runs": self.over_runs,
            "refused": list(self.refused),
            "wall_seconds": round(self.wall_seconds, 3),
        }

    def table(self, name: str) -> pa.Table:
        """A table in memory; of `nodes`, `histograms` and `quantiles` Spark computes it now."""
        found = self.frames[name]
        return found if isinstance(found, pa.Table) else found.toArrow()

    def write(self, directory: Path) -> None:
        """Every table as Parquet under `directory`, which must be new or empty, one folder each."""
        require_new(directory)
        for name, frame in self.frames.items():
            if isinstance(frame, pa.Table):
                (directory / name).mkdir(parents=True)
                pq.write_table(frame, directory / name / "part-00000.parquet")
            else:
                frame.write.parquet(str(directory / name))


def metrics_of(
    headers: Sequence[Header],
    totals: Mapping[str, dict[str, Any]],
    distributions: Sequence[dict[str, Any]],
    frames: Mapping[str, DataFrame | pa.Table],
    seconds: float,
    refused: Sequence[str] = (),
) -> Metrics:
    """`totals` by run, complete with ratios; `distributions` rows of run, metric and the statistics."""
    across = over_runs(_one_value_per_run(headers, totals, distributions))
    small = {
        "totals": pa.Table.from_pylist(list(totals.values()), _TOTALS),
        "distributions": pa.Table.from_pylist(list(distributions), _DISTRIBUTIONS),
        "over_runs": pa.Table.from_pylist(across, _OVER_RUNS),
    }
    return Metrics(_per_run(headers, totals, distributions), across, {**small, **frames}, seconds, refused)


def _one_value_per_run(
    headers: Sequence[Header], totals: Mapping[str, dict[str, Any]], distributions: Sequence[dict[str, Any]]
) -> dict[tuple[str, str], list[float]]:
    """(setting, metric) → the mean of a distribution, or a total, of each run that has it."""
    setting = {header.run: header.setting for header in headers}
    found: dict[tuple[str, str], list[float]] = {}
    for run, total in totals.items():
        for name in (*tables.TOTALS, *tables.RATIOS):
            if total.get(name) is not None:
                found.setdefault((setting[run], name), []).append(float(total[name]))
    for row in distributions:
        found.setdefault((setting[row["run"]], row["metric"]), []).append(row["mean"])
    return found


def _per_run(
    headers: Sequence[Header], totals: Mapping[str, dict[str, Any]], distributions: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    spread: dict[str, dict[str, Any]] = {}
    for row in sorted(distributions, key=lambda row: str(row["metric"])):
        spread.setdefault(row["run"], {})[row["metric"]] = {name: row[name] for name in STATISTICS}
    return [
        {**header.to_json(), **totals.get(header.run, {}), **spread.get(header.run, {})}
        for header in sorted(headers, key=lambda header: header.run)
    ]
