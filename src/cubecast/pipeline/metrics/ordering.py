"""How much causal information publications carry, and how much other representations would."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.keys import NODE_TOPIC, is_kind
from cubecast.trace.schema import Kind


def barrier_sizes(events: DataFrame) -> DataFrame:
    """Direct dependencies each publication claims; a row without claims counts as none. → run, metric, value"""
    size = F.coalesce(F.size("deps"), F.lit(0))
    return (
        events.select("run", "kind", "deps")
        .where(is_kind(Kind.PUBLISH))
        .select("run", F.lit("barrier_size").alias("metric"), F.greatest(size, F.lit(0)).cast("double").alias("value"))
    )


def vector_sizes(events: DataFrame) -> DataFrame:
    """Entries a vector clock would need on each publication, the publisher's own included.

    `vector_size`: every publisher in the causal past. `vector_changed`: only those heard from since this node's
    previous publication on the topic, which is Birman's compression. Both count what the publisher had delivered,
    read from its own history, not from claims.

    → run, metric, value
    """
    history = Window.partitionBy(*NODE_TOPIC).orderBy("seq")
    so_far = history.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    counted = (
        _publish_and_foreign_deliver_rows(events)
        .withColumn("previous", F.lag("seq").over(_one_source()))
        .withColumn("last_publish", F.max(F.when(_publishes(), F.col("seq"))).over(so_far))
        .withColumn("new", ~_publishes() & F.col("previous").isNull())
        .withColumn("again", ~_publishes() & (F.col("previous") < F.col("last_publish")))
        .withColumn("width", F.sum(F.col("new").cast("int")).over(so_far))
        .withColumn("changes", F.sum((F.col("new") | F.coalesce("again", F.lit(False))).cast("int")).over(so_far))
        .where(_publishes())
        .withColumn("changed", F.col("changes") - F.coalesce(F.lag("changes").over(history), F.lit(0)))
    )
    both = F.create_map(F.lit("vector_size"), F.col("width") + 1, F.lit("vector_changed"), F.col("changed") + 1)
    return counted.select("run", F.explode(both).alias("metric", "value")).select(
        "run", "metric", F.col("value").cast("double").alias("value")
    )


def _publish_and_foreign_deliver_rows(events: DataFrame) -> DataFrame:
    """Partitioned once by (node, topic): both windows above then sort in place instead of shuffling twice."""
    foreign = (F.col("source") != F.col("node")) | (F.col("source_incarnation") != F.col("incarnation"))
    return (
        events.select(*NODE_TOPIC, "seq", "kind", "source", "source_incarnation")
        .where(is_kind(Kind.PUBLISH) | (is_kind(Kind.DELIVER) & foreign))
        .repartition(*NODE_TOPIC)
    )


def _one_source() -> Window:
    return Window.partitionBy(*NODE_TOPIC, "source", "source_incarnation").orderBy("seq")


def _publishes() -> Column:
    return is_kind(Kind.PUBLISH)
