"""A workload from beginning to end: make it, write it once, profile what was written."""

from pathlib import Path

from pyspark.sql import SparkSession

from cubecast.pipeline.outputs import require_new
from cubecast.pipeline.workloads.logs import LogFormat, read_log
from cubecast.pipeline.workloads.profile import Profile, profile, write_subscriptions
from cubecast.pipeline.workloads.synthetic import GridModel, synthetic_subscriptions
from cubecast.pipeline.workloads.universe import UniverseRules, median_size, universe, universe_size


def build_universe(
    spark: SparkSession, log: LogFormat, rules: UniverseRules, seed: int, candidates: int, out: Path
) -> tuple[int, Profile]:
    """Of `candidates` universes (seeds `seed`, `seed` + 1, …) the median one, written to `out`, and its seed."""
    require_new(out)
    subscriptions = read_log(spark, log).persist()
    attempts = range(seed, seed + candidates)
    kept = seed if candidates <= 1 else median_size(universe_size(subscriptions, rules, one) for one in attempts).seed
    found = profile(write_subscriptions(universe(subscriptions, rules, kept), out), seed)
    subscriptions.unpersist()
    return kept, found


def build_synthetic(spark: SparkSession, model: GridModel, seed: int, out: Path) -> Profile:
    require_new(out)
    return profile(write_subscriptions(synthetic_subscriptions(spark, model, seed), out), seed)
