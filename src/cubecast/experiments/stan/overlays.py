"""Overlays of a subscription table: StaN's rounds on Spark, what they save and what the graphs are like."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cubecast.errors import BadInput
from cubecast.experiments.stan.spark_rounds import Rounds, run_rounds
from cubecast.pipeline.staging import require_new
from cubecast.pipeline.workloads.table import number_table, read_table, require_members
from cubecast.sim.kernels.stan_metrics import MEASURES

MUCH = 0.4
"""An improvement worth mentioning, §3.3.4."""


def write_overlays(
    spark: SparkSession, table: Path, rules: Rounds, out: Path, tell: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Two tables below `out`, `processes` and `topics`; returns what they come to."""
    require_new(out)
    tell("numbering users and topics")
    numbered = number_table(read_table(spark, table))
    require_members(spark, table, numbered, rules.least_members)
    tell(f"{rules.rounds} rounds of StaN")
    outcome = run_rounds(numbered, rules, spark.sparkContext.defaultParallelism)
    with _complaints_of_tasks():
        named = outcome.links().join(numbered.users, on="process", how="inner")
        named.select("user", "round", "topics", "logical", "links").write.parquet(str(out / "processes"))
        graphs = outcome.topics().join(numbered.topics.select("name", "topic"), on="topic", how="inner")
        graphs.select(F.col("name").alias("topic"), "round", "members", "view", *MEASURES).write.parquet(
            str(out / "topics")
        )
    outcome.release()
    numbered.release()
    return summary(spark.read.parquet(str(out / "processes")), spark.read.parquet(str(out / "topics")), rules.rounds)


@contextmanager
def _complaints_of_tasks() -> Iterator[None]:
    """What is wrong with the input may be seen in a task only."""
    try:
        yield
    except PythonException as error:
        if told := re.search(r"BadInput: (.*)", str(error)):
            raise BadInput(told[1]) from None
        raise


def summary(processes: DataFrame, topics: DataFrame, last: int) -> dict[str, Any]:
    by_round = (
        processes.groupBy("round")
        .agg(F.count("*").alias("users"), F.avg("links").alias("links"), F.avg("logical").alias("logical"))
        .orderBy("round")
        .collect()
    )
    before, after = (processes.where(F.col("round") == number) for number in (0, last))
    both = before.select("user", F.col("links").alias("before")).join(
        after.select("user", "topics", F.col("links").alias("after")), on="user", how="inner"
    )
    gained = 1 - F.col("after") / F.col("before")
    (gain,) = both.agg(
        F.avg(F.col("before") / F.col("after")).alias("ratio"),
        F.avg((gained > MUCH).cast("double")).alias("improved"),
        F.sum("topics").alias("subscriptions"),
    ).collect()
    graphs = topics.groupBy("round").agg(F.count("*").alias("topics"), *(F.avg(name).alias(name) for name in MEASURES))
    looked = {row["round"]: row.asDict() for row in graphs.collect()}
    return {
        "users": by_round[0].users,
        "subscriptions": gain.subscriptions,
        "logical_links": by_round[0].logical,
        "links": {str(row["round"]): row.links for row in by_round},
        "before_over_after": gain.ratio,
        "improved": gain.improved,
        "overlays": {
            when: {name: looked[number][name] for name in ("topics", *MEASURES)}
            for when, number in (("before", 0), ("after", last))
        },
    }
