"""What a run cost the network: packets, messages, bytes, what of it nobody wanted; the output queue of every node, and
how evenly the nodes share the work.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.journeys import MESSAGE, NODE, carries_publication, is_kind, messages_inside, remote
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


# The output queue of every node, the packets it has under way, and how evenly the nodes share the work.
#
# A trace says when a packet is handed to the sender's output queue and when it arrives, not when it leaves. Two
# readings follow from that. `transits` needs nothing else: a packet is *in flight* from hand-over to arrival, waiting
# included. `output_queue` rebuilds the queue itself and needs one more fact, the transmission time of a packet: a
# single server with a constant service time s sends its k-th packet, handed over at a_k, at d_k = k·s + max over j ≤ k
# of (a_j − (j − 1)·s). That is a running maximum, so it is one window and no simulation. Where the run's header names
# no transmission time (a live system), only the first reading exists.

_ROUNDING = 1e-6
"""Of a packet: sums of times in doubles must not make one packet two."""


def output_queue(events: DataFrame, service: DataFrame) -> DataFrame:
    """Per packet that went through the queue, how long the queue was and how long it waited.

    `service`: run, transmission_time (> 0), queued_control (false: control packets bypass the queue and have no row).

    `queue_length` is the queue as the packet joins it: those waiting, the one in transmission, and itself.
    `sojourn` is waiting and transmission together.

    → run, node, incarnation, seq, time, queue_length, waiting_time, sojourn
    """
    history = Window.partitionBy(*NODE).orderBy("seq")
    so_far = history.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    each = F.col("transmission_time")
    sends = events.select(*NODE, *MESSAGE[1:], "seq", "time", "kind", "messages").where(is_kind(Kind.SEND))
    return (
        sends.join(F.broadcast(service.select("run", "transmission_time", "queued_control")), on="run", how="inner")
        .where(F.col("queued_control") | carries_publication())
        .withColumn("position", F.row_number().over(history))
        .withColumn("slack", F.max(F.col("time") - (F.col("position") - 1) * each).over(so_far))
        .withColumn("sojourn", F.col("position") * each + F.col("slack") - F.col("time"))
        .select(
            *NODE,
            "seq",
            "time",
            F.ceil(F.col("sojourn") / each - _ROUNDING).cast("int").alias("queue_length"),
            (F.col("sojourn") - each).alias("waiting_time"),
            "sojourn",
        )
    )


def queue_values(queue: DataFrame) -> DataFrame:
    """The queue as packets join it. → run, metric, value"""
    both = F.create_map(
        F.lit("queue_length"), F.col("queue_length").cast("double"), F.lit("queue_waiting_time"), F.col("waiting_time")
    )
    return (
        queue.select("run", "queue_length", "waiting_time")
        .select("run", F.explode(both).alias("metric", "value"))
        .select("run", "metric", "value")
    )


def queue_per_node(queue: DataFrame, spans: DataFrame) -> DataFrame:
    """`queue_mean`: average number in the queue over the run's time (Little: sojourns over span). `spans`: run, span.

    → run, node, queue_mean, queue_joined_mean, queue_max
    """
    return (
        queue.select("run", "node", "queue_length", "sojourn")
        .join(F.broadcast(spans.select("run", "span")), on="run", how="inner")
        .groupBy("run", "node", "span")
        .agg(
            F.sum("sojourn").alias("sojourns"),
            F.avg("queue_length").alias("queue_joined_mean"),
            F.max("queue_length").alias("queue_max"),
        )
        .select("run", "node", F.try_divide("sojourns", "span").alias("queue_mean"), "queue_joined_mean", "queue_max")
    )


def transits(events: DataFrame) -> DataFrame:
    """Hand-over to first arrival of every packet; `arrived_at` is null for a packet that never arrived.

    → run, node (the sender), peer, packet, sent_at, arrived_at
    """
    sent = is_kind(Kind.SEND)
    return (
        events.select("run", "node", "peer", "packet", "kind", "time")
        .where(is_kind(Kind.SEND, Kind.RECEIVE) & F.col("packet").isNotNull())
        .groupBy(
            "run",
            F.when(sent, F.col("node")).otherwise(F.col("peer")).alias("sender"),
            F.when(sent, F.col("peer")).otherwise(F.col("node")).alias("receiver"),
            "packet",
        )
        .agg(
            F.min(F.when(sent, F.col("time"))).alias("sent_at"),
            F.min(F.when(~sent, F.col("time"))).alias("arrived_at"),
        )
        .where(F.col("sent_at").isNotNull())
        .select(
            "run", F.col("sender").alias("node"), F.col("receiver").alias("peer"), "packet", "sent_at", "arrived_at"
        )
    )


def transit_times(transits: DataFrame) -> DataFrame:
    """→ run, metric, value"""
    return (
        transits.select("run", "sent_at", "arrived_at")
        .where(F.col("arrived_at").isNotNull())
        .select("run", F.lit("transit_time").alias("metric"), (F.col("arrived_at") - F.col("sent_at")).alias("value"))
    )


def in_flight_per_node(transits: DataFrame) -> DataFrame:
    """The most packets a node ever had under way, of those that arrived, and how many never did.

    Arrivals at the very moment of a hand-over leave first. → run, node, in_flight_max, lost
    """
    so_far = (
        Window.partitionBy("run", "node")
        .orderBy("at", "step")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    one = F.when(F.col("arrived_at").isNull(), 0).otherwise(1)
    up = F.struct(F.col("sent_at").alias("at"), one.alias("step"))
    down = F.struct(F.col("arrived_at").alias("at"), (-one).alias("step"))
    return (
        transits.select("run", "node", "sent_at", "arrived_at")
        .select("run", "node", F.explode(F.array(up, down)).alias("one"))
        .select("run", "node", "one.at", "one.step")
        .withColumn("in_flight", F.sum("step").over(so_far))
        .groupBy("run", "node")
        .agg(
            F.max("in_flight").cast("int").alias("in_flight_max"),
            F.count(F.when(F.col("at").isNull(), 1)).alias("lost"),
        )
        .select("run", "node", "in_flight_max", "lost")
    )


# How evenly the nodes share the work.

LOADS = ("packets_sent", "packets_received", "bytes_sent")


def load_per_node(events: DataFrame) -> DataFrame:
    """Every node that wrote a row, also those that sent nothing: idleness is part of the balance.

    → run, node, packets_sent, packets_received, bytes_sent, deliveries
    """
    sent, received = is_kind(Kind.SEND), is_kind(Kind.RECEIVE)
    return (
        events.select("run", "node", "kind", "bytes")
        .groupBy("run", "node")
        .agg(
            F.count(F.when(sent, True)).alias("packets_sent"),
            F.count(F.when(received, True)).alias("packets_received"),
            F.sum(F.when(sent, F.coalesce("bytes", F.lit(0))).otherwise(0)).alias("bytes_sent"),
            F.count(F.when(is_kind(Kind.DELIVER), True)).alias("deliveries"),
        )
        .select("run", "node", *LOADS, "deliveries")
    )


def balance(nodes: DataFrame) -> DataFrame:
    """Gini coefficient (0: all equal, towards 1: one does everything) and the busiest node over the mean.

    With values x_1 ≤ … ≤ x_n, Gini = Σ (2i − n − 1)·x_i / (n·Σ x_i). Null when nobody did anything.

    → run, load, gini, max_over_mean
    """
    ranked = Window.partitionBy("run", "load").orderBy("value", "node")
    whole = Window.partitionBy("run", "load").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return (
        nodes.select("run", "node", *LOADS)
        .unpivot(["run", "node"], list(LOADS), "load", "value")
        .withColumn("rank", F.row_number().over(ranked))
        .withColumn("n", F.count("*").over(whole))
        .groupBy("run", "load")
        .agg(
            F.try_divide(
                F.sum((2 * F.col("rank") - F.col("n") - 1) * F.col("value")), F.count("*") * F.sum("value")
            ).alias("gini"),
            F.try_divide(F.max("value"), F.avg("value")).alias("max_over_mean"),
        )
        .select("run", "load", "gini", "max_over_mean")
    )
