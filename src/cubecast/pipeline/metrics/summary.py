"""From many values to the numbers a table prints: per run, and over the runs of one setting."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.student import student_quantile

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


def over_runs(spark: SparkSession, values: DataFrame, most: int) -> DataFrame:
    """One value per run and metric, over the runs of one setting, of which there are at most `most`.

    `values`: setting, run, metric, value. `ci99` is half the width of the mean's 99 % confidence interval, by
    Student's t over independent runs; null for a single run.

    → setting, metric, runs, mean, std, ci99, min, max
    """
    grouped = (
        values.select("setting", "run", "metric", "value")
        .where(F.col("value").isNotNull())
        .groupBy("setting", "metric")
        .agg(
            F.count("value").alias("runs"),
            F.avg("value").alias("mean"),
            F.stddev_samp("value").alias("std"),
            F.min("value").alias("min"),
            F.max("value").alias("max"),
        )
    )
    quantiles = spark.createDataFrame(
        [(runs, student_quantile(runs - 1, LEVEL)) for runs in range(2, most + 1)], "runs bigint, quantile double"
    )
    return (
        grouped.join(F.broadcast(quantiles), on="runs", how="left")
        .withColumn("ci99", F.col("quantile") * F.col("std") / F.sqrt("runs"))
        .select("setting", "metric", "runs", "mean", "std", "ci99", "min", "max")
    )
