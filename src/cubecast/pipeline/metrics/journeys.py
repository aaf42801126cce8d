"""One row per publication and node it reached: published, first received, delivered."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.keys import MESSAGE, NODE_TOPIC, is_kind
from cubecast.trace.schema import Kind

_WHO_WHAT = (*NODE_TOPIC, "source", "source_incarnation", "counter")
_RECEIVED = "inferred boolean, seq bigint, time double, hops int, subscribed boolean"
_DELIVERED = "seq bigint, time double"


def journeys(events: DataFrame, packets: DataFrame, publications: DataFrame) -> DataFrame:
    """Where each publication went. `packets` are `publication_packets`, `publications` are `publications`.

    A packet's row names its first message and how many are inside. The others are taken to be the same publisher's
    next ones, unless a row at that node names them, or they were not yet published: a packet that gathers several
    publishers tells when its first message came, and nothing about the rest (`received_at` stays null for those).

    → run, node, incarnation, topic, source, source_incarnation, counter, published_at, received_at, received_seq,
    delivered_at, delivered_seq, hops, subscribed, copies
    """
    reached = arrivals(packets).unionByName(deliveries(events))
    first = reached.groupBy(*_WHO_WHAT).agg(
        F.min("received").alias("received"), F.min("delivered").alias("delivered"), F.sum("copy").alias("copies")
    )
    joined = first.join(publications, on=list(MESSAGE), how="left").withColumn("came", _came())
    return joined.where(F.col("came").isNotNull() | F.col("delivered").isNotNull()).select(
        *_WHO_WHAT,
        "published_at",
        F.col("came.time").alias("received_at"),
        F.col("came.seq").alias("received_seq"),
        F.col("delivered.time").alias("delivered_at"),
        F.col("delivered.seq").alias("delivered_seq"),
        F.col("came.hops").alias("hops"),
        F.col("came.subscribed").alias("subscribed"),
        F.col("copies").cast("bigint").alias("copies"),
    )


def _came() -> Column:
    believable = ~F.col("received.inferred") | (F.col("received.time") >= F.col("published_at"))
    return F.when(believable, F.col("received"))


def arrivals(packets: DataFrame) -> DataFrame:
    """Receive rows, one per message inside. `received` sorts named messages before inferred ones, then by seq.

    → run, node, incarnation, topic, source, source_incarnation, counter, received, delivered (null), copy
    """
    inside = F.sequence("counter", F.col("counter") + F.greatest(F.coalesce("messages", F.lit(1)), F.lit(1)) - 1)
    received = F.struct(F.col("position") > 0, "seq", "time", "hops", "subscribed")
    return (
        packets.select(*_WHO_WHAT, "kind", "seq", "time", "messages", "hops", "subscribed")
        .where(is_kind(Kind.RECEIVE))
        .select("*", F.posexplode(inside).alias("position", "one"))
        .withColumn("counter", F.col("one"))
        .select(
            *_WHO_WHAT,
            received.cast(f"struct<{_RECEIVED}>").alias("received"),
            F.lit(None).cast(f"struct<{_DELIVERED}>").alias("delivered"),
            (F.col("position") == 0).cast("bigint").alias("copy"),
        )
    )


def deliveries(events: DataFrame) -> DataFrame:
    """Deliver rows in the shape of `arrivals`.

    → run, node, incarnation, topic, source, source_incarnation, counter, received (null), delivered, copy (0)
    """
    return (
        events.select(*_WHO_WHAT, "kind", "seq", "time")
        .where(is_kind(Kind.DELIVER))
        .select(
            *_WHO_WHAT,
            F.lit(None).cast(f"struct<{_RECEIVED}>").alias("received"),
            F.struct("seq", "time").cast(f"struct<{_DELIVERED}>").alias("delivered"),
            F.lit(0).cast("bigint").alias("copy"),
        )
    )


def remote() -> Column:
    """The journey ended at another node than it began; a publisher's own copy travels nowhere."""
    return (F.col("node") != F.col("source")) | (F.col("incarnation") != F.col("source_incarnation"))
