"""How long a subscription takes to be confirmed."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.keys import NODE_TOPIC, is_kind
from cubecast.trace.schema import Kind

_PAIRS = {Kind.SUBSCRIBE: Kind.SUBSCRIBED, Kind.UNSUBSCRIBE: Kind.UNSUBSCRIBED}


def subscription_latencies(events: DataFrame) -> DataFrame:
    """From `subscribe` to the next `subscribed` of that node and topic, and the same for unsubscribing.

    A node may subscribe again after leaving, so a confirmation belongs to the request just before it, in the node's
    own order. Confirmations nobody asked for and requests never confirmed give no row.

    → run, node, incarnation, topic, metric, value
    """
    history = Window.partitionBy(*NODE_TOPIC).orderBy("seq")
    rows = (
        events.select(*NODE_TOPIC, "seq", "time", "kind")
        .where(is_kind(*_PAIRS, *_PAIRS.values()))
        .withColumn("asked", F.lag("kind").over(history))
        .withColumn("asked_at", F.lag("time").over(history))
    )
    subscribed = is_kind(Kind.SUBSCRIBED) & (F.col("asked") == Kind.SUBSCRIBE.value)
    unsubscribed = is_kind(Kind.UNSUBSCRIBED) & (F.col("asked") == Kind.UNSUBSCRIBE.value)
    metric = F.when(subscribed, "subscription_latency").when(unsubscribed, "unsubscription_latency")
    return (
        rows.withColumn("metric", metric)
        .where(F.col("metric").isNotNull())
        .select(*NODE_TOPIC, "metric", (F.col("time") - F.col("asked_at")).alias("value"))
    )


def subscription_counts(events: DataFrame) -> DataFrame:
    """Requests and confirmations per run. → run, subscribes, subscribed, unsubscribes"""
    return (
        events.select("run", "kind")
        .where(is_kind(Kind.SUBSCRIBE, Kind.SUBSCRIBED, Kind.UNSUBSCRIBE))
        .groupBy("run")
        .agg(
            F.count(F.when(is_kind(Kind.SUBSCRIBE), True)).alias("subscribes"),
            F.count(F.when(is_kind(Kind.SUBSCRIBED), True)).alias("subscribed"),
            F.count(F.when(is_kind(Kind.UNSUBSCRIBE), True)).alias("unsubscribes"),
        )
        .select("run", "subscribes", "subscribed", "unsubscribes")
    )
