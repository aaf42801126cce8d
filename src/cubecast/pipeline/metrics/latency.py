"""How long publications take: to arrive, to be delivered, and how long they are held in between."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.journeys import remote
from cubecast.pipeline.metrics.keys import MESSAGE

_JOURNEY = ("node", "incarnation", "published_at", "received_at", "delivered_at", "subscribed")


def latencies(journeys: DataFrame) -> DataFrame:
    """Reception latency (at subscribers), delivery latency and holding time, away from the publisher.

    → run, metric, value
    """
    reception = F.when(F.col("subscribed"), F.col("received_at") - F.col("published_at"))
    measured = F.array(
        _named("reception_latency", reception),
        _named("delivery_latency", F.col("delivered_at") - F.col("published_at")),
        _named("holding_time", F.col("delivered_at") - F.col("received_at")),
    )
    return (
        journeys.select(*MESSAGE, *_JOURNEY)
        .where(remote())
        .select("run", F.explode(measured).alias("one"))
        .select("run", "one.metric", "one.value")
        .where(F.col("value").isNotNull())
    )


def completion_latency(journeys: DataFrame) -> DataFrame:
    """Per publication, until the last node that delivered it had it. → run, metric, value"""
    return (
        journeys.select(*MESSAGE, *_JOURNEY)
        .where(remote() & F.col("delivered_at").isNotNull() & F.col("published_at").isNotNull())
        .groupBy(*MESSAGE)
        .agg(F.max(F.col("delivered_at") - F.col("published_at")).alias("value"))
        .select("run", F.lit("completion_latency").alias("metric"), "value")
    )


def hops(journeys: DataFrame) -> DataFrame:
    """Distance from the source at each first arrival at a subscriber. → run, metric, value"""
    return (
        journeys.select("run", "hops", "subscribed")
        .where(F.col("subscribed") & F.col("hops").isNotNull())
        .select("run", F.lit("hops").alias("metric"), F.col("hops").cast("double").alias("value"))
    )


def _named(metric: str, value: Column) -> Column:
    return F.struct(F.lit(metric).alias("metric"), value.alias("value"))
