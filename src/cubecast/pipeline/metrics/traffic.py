"""What a run cost the network: packets, messages, bytes, and what of it nobody wanted."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.journeys import MESSAGE, carries_publication, is_kind, messages_inside, remote
from cubecast.trace.schema import Kind

COUNTS = (
    *("nodes", "published", "deliveries", "packets", "publication_packets", "control_packets"),
    *("aggregated_packets", "messages_sent", "bytes", "gaps", "discards", "failed", "events"),
)


def traffic(events: DataFrame) -> DataFrame:
    """Counts per run. A packet to k peers is k packets; `messages_sent` and `aggregated_packets` speak of publications.

    → run, nodes, published, deliveries, packets, publication_packets, control_packets, aggregated_packets,
    messages_sent, bytes, gaps, discards, failed, events, began_at, ended_at
    """
    sent = is_kind(Kind.SEND)
    useful = sent & carries_publication()
    messages = messages_inside()
    return (
        events.select(*MESSAGE, "node", "kind", "time", "messages", "bytes")
        .groupBy("run")
        .agg(
            F.count_distinct("node").alias("nodes"),
            _number(is_kind(Kind.PUBLISH)).alias("published"),
            _number(is_kind(Kind.DELIVER)).alias("deliveries"),
            _number(sent).alias("packets"),
            _number(useful).alias("publication_packets"),
            _number(sent & ~carries_publication()).alias("control_packets"),
            _number(useful & (messages > 1)).alias("aggregated_packets"),
            F.sum(F.when(useful, messages).otherwise(0)).alias("messages_sent"),
            F.sum(F.when(sent, F.coalesce("bytes", F.lit(0))).otherwise(0)).alias("bytes"),
            _number(is_kind(Kind.GAP)).alias("gaps"),
            _number(is_kind(Kind.DISCARD)).alias("discards"),
            _number(is_kind(Kind.FAILED)).alias("failed"),
            F.count("*").alias("events"),
            F.min("time").alias("began_at"),
            F.max("time").alias("ended_at"),
        )
        .select("run", *COUNTS, "began_at", "ended_at")
    )


def packet_sizes(packets: DataFrame) -> DataFrame:
    """Messages and bytes of every packet sent with a publication. → run, metric, value"""
    sizes = F.create_map(F.lit("messages_per_packet"), messages_inside(), F.lit("bytes_per_packet"), F.col("bytes"))
    return (
        packets.select(*MESSAGE, "kind", "messages", "bytes")
        .where(is_kind(Kind.SEND))
        .select("run", F.explode(sizes).alias("metric", "value"))
        .where(F.col("value").isNotNull())
        .select("run", "metric", F.col("value").cast("double").alias("value"))
    )


def unwanted(packets: DataFrame) -> DataFrame:
    """Publications received by nodes not subscribed just then, and how many distinct nodes forwarded such.

    → run, receptions, false_positives, relays
    """
    foreign = F.coalesce(F.col("node") != F.col("source"), F.lit(True))  # messages of several publishers
    relaying = is_kind(Kind.SEND) & ~F.col("subscribed") & foreign
    received = is_kind(Kind.RECEIVE)
    return (
        packets.select("run", "node", "kind", "source", "subscribed")
        .groupBy("run")
        .agg(
            _number(received).alias("receptions"),
            _number(received & ~F.col("subscribed")).alias("false_positives"),
            F.count_distinct(F.when(relaying, F.col("node"))).alias("relays"),
        )
        .select("run", "receptions", "false_positives", "relays")
    )


def arrivals_by_outcome(journeys: DataFrame) -> DataFrame:
    """Copies beyond the first, deliveries whose arrival no row names, and subscribers' arrivals never delivered.

    → run, duplicates, deliveries_without_reception, undelivered
    """
    received, delivered = F.col("received_at").isNotNull(), F.col("delivered_at").isNotNull()
    return (
        journeys.select(*MESSAGE, "node", "incarnation", "received_at", "delivered_at", "subscribed", "copies")
        .groupBy("run")
        .agg(
            F.sum(F.greatest(F.col("copies") - 1, F.lit(0))).alias("duplicates"),
            _number(delivered & ~received & remote()).alias("deliveries_without_reception"),
            _number(received & ~delivered & F.col("subscribed")).alias("undelivered"),
        )
        .select("run", "duplicates", "deliveries_without_reception", "undelivered")
    )


def _number(condition: Column) -> Column:
    return F.count(F.when(condition, True))
