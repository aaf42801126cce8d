"""One row per publication and node it reached: published, first received, delivered."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cubecast.trace.schema import Kind

# The names metrics group and join by, and what tells a publication's packet from a control packet.

NODE: Final = ("run", "node", "incarnation")
"""One local history: `seq` orders its rows."""

MESSAGE: Final = ("run", "topic", "source", "source_incarnation", "counter")
"""One publication."""

NODE_TOPIC: Final = (*NODE, "topic")


def is_kind(*kinds: Kind) -> Column:
    return F.col("kind").isin([kind.value for kind in kinds])


def carries_publication() -> Column:
    """On send and receive rows: control packets have no message inside."""
    return messages_inside() > 0


def is_named() -> Column:
    return F.col("source").isNotNull() & F.col("source_incarnation").isNotNull() & F.col("counter").isNotNull()


def messages_inside() -> Column:
    """How many; a row that lists none holds the one that it names."""
    alone = F.when(is_named() & F.col("topic").isNotNull(), 1).otherwise(0)
    return F.when(F.col("messages").isNotNull(), F.size("messages")).otherwise(alone)


_ID = ("source", "source_incarnation", "counter")
_WHO_WHAT = (*NODE_TOPIC, *_ID)
_ARRIVAL = {"place": "bigint", "came_at": "double", "hops": "int", "subscribed": "boolean", "copy": "bigint"}
_DELIVERY = {"delivered_seq": "bigint", "delivered_at": "double"}


def journeys(events: DataFrame, packets: DataFrame, publications: DataFrame) -> DataFrame:
    """Where each publication went. `packets` are `publication_packets`, `publications` are `publications`.

    → run, node, incarnation, topic, source, source_incarnation, counter, published_at, received_at, received_seq,
    delivered_at, delivered_seq, hops, subscribed, copies
    """
    reached = _first_of_each(arrivals(packets).unionByName(deliveries(events), allowMissingColumns=True))
    return reached.join(publications, on=list(MESSAGE), how="left").select(
        *_WHO_WHAT,
        "published_at",
        F.col("came_at").alias("received_at"),
        F.col("place").alias("received_seq"),
        "delivered_at",
        "delivered_seq",
        "hops",
        "subscribed",
        "copies",
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


def arrivals(packets: DataFrame) -> DataFrame:
    """Receive rows, one per message inside.

    → run, node, incarnation, topic, source, source_incarnation, counter, place, came_at, hops, subscribed, copy
    """
    alone = F.array(F.struct(F.lit(None).cast("string").alias("topic"), *(F.col(name) for name in _ID)))
    inside = F.when(F.col("messages").isNotNull(), F.col("messages")).otherwise(alone)
    return (
        packets.select(*_WHO_WHAT, "kind", "seq", F.col("time").alias("came_at"), "messages", "hops", "subscribed")
        .where(is_kind(Kind.RECEIVE))
        .select("*", F.explode(inside).alias("one"))
        .withColumns({"topic": F.coalesce("one.topic", "topic"), **{name: F.col(f"one.{name}") for name in _ID}})
        .withColumns({"place": F.col("seq"), "copy": F.lit(1)})
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
