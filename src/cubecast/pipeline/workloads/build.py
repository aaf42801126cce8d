"""A workload from beginning to end: make it, write it once, profile what was written."""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cubecast.pipeline.outputs import require_new
from cubecast.pipeline.workloads.logs import LogFormat, read_log
from cubecast.pipeline.workloads.matched import Shape, matched_subscriptions
from cubecast.pipeline.workloads.profile import Profile, profile, write_subscriptions
from cubecast.pipeline.workloads.synthetic import GridModel, synthetic_subscriptions
from cubecast.pipeline.workloads.universe import UniverseRules, median_size, universe, universe_size
from cubecast.pipeline.workloads.zipf import ZipfLoad, zipf_load


def build_universe(
    spark: SparkSession, log: LogFormat, rules: UniverseRules, seed: int, candidates: int, out: Path
) -> tuple[int, int, Profile]:
    """Of `candidates` universes (seeds `seed`, `seed` + 1, …) the median one, written to `out`.

    Returns its seed, how many rows of the log were left out, and its profile.
    """
    require_new(out)
    pairs = read_log(spark, log)
    attempts = range(seed, seed + candidates)
    kept = seed if candidates <= 1 else median_size(universe_size(pairs.found, rules, one) for one in attempts).seed
    found = profile(write_subscriptions(universe(pairs.found, rules, kept), out), seed)
    pairs.release()
    return kept, pairs.skipped, found


def build_synthetic(spark: SparkSession, model: GridModel, seed: int, out: Path) -> Profile:
    require_new(out)
    return profile(write_subscriptions(synthetic_subscriptions(spark, model, seed), out), seed)


def build_matched(spark: SparkSession, shape: Shape, seed: int, out: Path) -> Profile:
    require_new(out)
    return profile(write_subscriptions(matched_subscriptions(spark, shape, seed), out), seed)


def build_publications(spark: SparkSession, load: ZipfLoad, seed: int, out: Path) -> float:
    """The load, written to `out`; returns the share of the busiest topic in it."""
    require_new(out)
    zipf_load(spark, load, seed).write.mode("overwrite").parquet(str(out))
    (most,) = spark.read.parquet(str(out)).groupBy("rank").count().agg(F.max("count").alias("count")).collect()
    return float(most["count"]) / load.publications
