"""One row per publication and node it reached: published, first received, delivered."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.keys import MESSAGE, NODE_TOPIC, is_kind
from cubecast.trace.schema import Kind

_WHO_WHAT = (*NODE_TOPIC, "source", "source_incarnation", "counter")
_INFERRED = 1 << 62
"""Added to the seq of a message no row names, so that a row that names it always counts as the first."""

_ARRIVAL = {"place": "bigint", "came_at": "double", "hops": "int", "subscribed": "boolean", "copy": "bigint"}
_DELIVERY = {"delivered_seq": "bigint", "delivered_at": "double"}


def journeys(events: DataFrame, packets: DataFrame, publications: DataFrame, highest: int) -> DataFrame:
    """Where each publication went. `packets` are `publication_packets`, `publications` are `publications`.

    No counter above `highest` was published: a packet that claims more inside than there is (a damaged trace) is
    followed no further than that.

    A packet's row names its first message and how many are inside. The others are taken to be the same publisher's
    next ones, unless a row at that node names them, or they were not yet published: a packet that gathers several
    publishers tells when its first message came, and nothing about the rest (`received_at` stays null for those).

    → run, node, incarnation, topic, source, source_incarnation, counter, published_at, received_at, received_seq,
    delivered_at, delivered_seq, hops, subscribed, copies
    """
    reached = _first_of_each(arrivals(packets, highest).unionByName(deliveries(events), allowMissingColumns=True))
    named = F.col("place") < _INFERRED
    believable = named | (F.col("came_at") >= F.col("published_at"))
    return (
        reached.join(publications, on=list(MESSAGE), how="left")
        .where(believable | F.col("delivered_seq").isNotNull())
        .select(
            *_WHO_WHAT,
            "published_at",
            F.when(believable, F.col("came_at")).alias("received_at"),
            F.when(believable, F.col("place") % _INFERRED).alias("received_seq"),
            "delivered_at",
            "delivered_seq",
            F.when(believable, F.col("hops")).alias("hops"),
            F.when(believable, F.col("subscribed")).alias("subscribed"),
            "copies",
        )
    )


def _first_of_each(reached: DataFrame) -> DataFrame:
    """First arrival and first delivery per node and message, all by numbers: structs would make Spark sort."""
    return reached.groupBy(*_WHO_WHAT).agg(
        F.min("place").alias("place"),
        *(F.min_by(name, "place").alias(name) for name in ("came_at", "hops", "subscribed")),
        F.min("delivered_seq").alias("delivered_seq"),
        F.min_by("delivered_at", "delivered_seq").alias("delivered_at"),
        F.sum(F.coalesce("copy", F.lit(0))).alias("copies"),
    )


def arrivals(packets: DataFrame, highest: int) -> DataFrame:
    """Receive rows, one per message inside; `copy` is 1 where the row names the message.

    → run, node, incarnation, topic, source, source_incarnation, counter, place, came_at, hops, subscribed, copy
    """
    last = F.col("counter") + F.greatest(F.coalesce("messages", F.lit(1)), F.lit(1)) - 1
    inside = F.sequence("counter", F.greatest("counter", F.least(last, F.lit(highest))))
    named = F.col("position") == 0
    return (
        packets.select(*_WHO_WHAT, "kind", "seq", F.col("time").alias("came_at"), "messages", "hops", "subscribed")
        .where(is_kind(Kind.RECEIVE))
        .select("*", F.posexplode(inside).alias("position", "one"))
        .withColumns(
            {"counter": F.col("one"), "place": F.when(named, F.col("seq")).otherwise(F.col("seq") + _INFERRED)}
        )
        .withColumn("copy", named)
        .select(*_WHO_WHAT, *(F.col(name).cast(kind).alias(name) for name, kind in _ARRIVAL.items()))
    )


def deliveries(events: DataFrame) -> DataFrame:
    """→ run, node, incarnation, topic, source, source_incarnation, counter, delivered_seq, delivered_at"""
    return (
        events.select(*_WHO_WHAT, "kind", F.col("seq").alias("delivered_seq"), F.col("time").alias("delivered_at"))
        .where(is_kind(Kind.DELIVER))
        .select(*_WHO_WHAT, *(F.col(name).cast(kind).alias(name) for name, kind in _DELIVERY.items()))
    )


def remote() -> Column:
    """The journey ended at another node than it began; a publisher's own copy travels nowhere."""
    return (F.col("node") != F.col("source")) | (F.col("incarnation") != F.col("source_incarnation"))
