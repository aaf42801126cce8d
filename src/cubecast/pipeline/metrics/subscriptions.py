"""How long a subscription takes to be confirmed, who wanted a publication, when publications were made."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.journeys import MESSAGE, NODE_TOPIC, carries_publication, is_kind
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


# Who wanted a publication when its packet passed: the difference between a subscriber and a relay.

_PACKET = ("seq", "time", "kind", "source", "source_incarnation", "counter", "peer", "packet")
_SIZES = ("messages", "bytes", "hops")
_BEGINS = (Kind.SUBSCRIBE, Kind.SUBSCRIBED)
_ENDS = (Kind.UNSUBSCRIBE, Kind.UNSUBSCRIBED)


def publication_packets(events: DataFrame) -> DataFrame:
    """Send and receive rows that carry a publication, each with `subscribed`: did this node want the topic just then?

    A node wants a topic from its request to subscribe to its request to unsubscribe, in its own order. A topic nobody
    ever subscribes to in a run is a broadcast: everyone is a subscriber.

    → run, node, incarnation, topic, seq, time, kind, source, source_incarnation, counter, peer, packet, messages,
    bytes, hops, subscribed
    """
    rows = events.select(*NODE_TOPIC, *_PACKET, *_SIZES)
    changes = is_kind(*_BEGINS, *_ENDS)
    so_far = Window.partitionBy(*NODE_TOPIC).orderBy("seq").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    state = F.when(is_kind(*_BEGINS), True).when(is_kind(*_ENDS), False)
    chosen = rows.where(changes).select("run", "topic").distinct().withColumn("chosen", F.lit(True))
    packets = is_kind(Kind.SEND, Kind.RECEIVE) & carries_publication()
    return (
        rows.where(packets | changes)
        .withColumn("state", F.last(state, ignorenulls=True).over(so_far))
        .where(packets)
        .join(F.broadcast(chosen), on=["run", "topic"], how="left")
        .withColumn("subscribed", F.coalesce("state", F.col("chosen").isNull()))
        .select(*NODE_TOPIC, *_PACKET, *_SIZES, "subscribed")
    )


# Every publication of a trace with the time it happened: what latencies are measured from.


def publications(events: DataFrame) -> DataFrame:
    """→ run, topic, source, source_incarnation, counter, published_at. A repeated row counts once, the earliest."""
    return (
        events.select(*MESSAGE, "kind", "time")
        .where(is_kind(Kind.PUBLISH))
        .groupBy(*MESSAGE)
        .agg(F.min("time").alias("published_at"))
        .select(*MESSAGE, "published_at")
    )
