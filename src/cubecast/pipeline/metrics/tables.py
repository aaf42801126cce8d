"""The tables a measurement consists of, put together from the themes: totals, distributions, histograms, nodes."""

from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.buffers import buffer_per_node
from cubecast.pipeline.metrics.interest import publication_packets
from cubecast.pipeline.metrics.journeys import journeys
from cubecast.pipeline.metrics.latency import completion_latency, hops, latencies
from cubecast.pipeline.metrics.load import LOADS, balance, load_per_node
from cubecast.pipeline.metrics.ordering import barrier_sizes, vector_sizes
from cubecast.pipeline.metrics.publications import publications
from cubecast.pipeline.metrics.queues import (
    in_flight_per_node,
    output_queue,
    queue_per_node,
    queue_values,
    transit_times,
    transits,
)
from cubecast.pipeline.metrics.subscriptions import subscription_counts, subscription_latencies
from cubecast.pipeline.metrics.traffic import COUNTS, arrivals_by_outcome, packet_sizes, unwanted

PER_NODE: Final = (
    *(*LOADS, "deliveries", "queue_mean", "queue_found_mean", "queue_max"),
    *("in_flight_max", "lost", "held_max", "held_mean"),
)
TOTALS: Final = (
    *(*COUNTS, "receptions", "false_positives", "relays"),
    *("duplicates", "deliveries_without_reception", "undelivered"),
    *("subscribes", "subscribed", "unsubscribes", "lost_packets"),
)
RATIOS: Final = (
    *("packets_per_publication", "all_packets_per_publication", "messages_per_publication", "bytes_per_publication"),
    *("aggregated_share", "false_positive_share", "span"),
    *(f"{load}_{measure}" for load in LOADS for measure in ("gini", "max_over_mean")),
)
COUNTED: Final = ("messages_per_packet", "bytes_per_packet", "barrier_size", "vector_size", "vector_changed", "hops")
"""Metrics whose values are whole numbers, worth a histogram."""


class Stages(NamedTuple):
    """Frames several tables need; whoever measures keeps them while it does."""

    events: DataFrame
    packets: DataFrame
    journeys: DataFrame
    transits: DataFrame
    queue: DataFrame


def stages(events: DataFrame, service: DataFrame) -> Stages:
    """`service`: run, transmission_time, for the runs that have one."""
    packets = publication_packets(events).persist()
    trips = journeys(events, packets, publications(events)).persist()
    return Stages(events, packets, trips, transits(events).persist(), output_queue(events, service).persist())


def values(stage: Stages) -> DataFrame:
    """Everything that is a distribution over messages or packets. → run, metric, value"""
    parts = (
        latencies(stage.journeys),
        completion_latency(stage.journeys),
        hops(stage.journeys),
        barrier_sizes(stage.events),
        vector_sizes(stage.events),
        packet_sizes(stage.packets),
        queue_values(stage.queue),
        transit_times(stage.transits),
        subscription_latencies(stage.events).select("run", "metric", "value"),
    )
    return reduce(DataFrame.unionByName, parts)


def nodes(stage: Stages, spans: DataFrame) -> DataFrame:
    """One row per node that wrote rows. What cannot be known (no transmission time) is null, what did not happen is 0.

    → run, node, packets_sent, packets_received, bytes_sent, deliveries, queue_mean, queue_found_mean, queue_max,
    in_flight_max, lost, held_max, held_mean
    """
    key = ["run", "node"]
    known = stage.queue.select("run").distinct().withColumn("known", F.lit(True))
    queued = ("queue_mean", "queue_found_mean", "queue_max")
    other = ("in_flight_max", "lost", "held_max", "held_mean")
    return (
        load_per_node(stage.events)
        .join(queue_per_node(stage.queue, spans), on=key, how="left")
        .join(in_flight_per_node(stage.transits), on=key, how="left")
        .join(buffer_per_node(stage.journeys, spans), on=key, how="left")
        .join(F.broadcast(known), on="run", how="left")
        .withColumns({name: F.when(F.col("known"), F.coalesce(name, F.lit(0))) for name in queued})
        .fillna(0, subset=list(other))
        .select("run", "node", *PER_NODE)
    )


def node_values(per_node: DataFrame) -> DataFrame:
    """Per-node numbers as distributions over nodes, `node_` before the name. → run, metric, value"""
    doubles = [F.col(name).cast("double").alias(f"node_{name}") for name in PER_NODE]
    names = [f"node_{name}" for name in PER_NODE]
    return (
        per_node.select("run", *doubles)
        .unpivot(["run"], names, "metric", "value")
        .where(F.col("value").isNotNull())
        .select("run", "metric", "value")
    )


def totals(stage: Stages, counts: DataFrame, per_node: DataFrame) -> DataFrame:
    """One row per run: what was counted, and the ratios of it. `counts` is `traffic`. → run, TOTALS…, RATIOS…"""
    shares = balance(per_node).groupBy("run").pivot("load", list(LOADS))
    lost = per_node.groupBy("run").agg(F.sum("lost").alias("lost_packets"))
    joined = counts
    for part in (
        unwanted(stage.packets),
        arrivals_by_outcome(stage.journeys),
        subscription_counts(stage.events),
        lost,
        shares.agg(F.first("gini").alias("gini"), F.first("max_over_mean").alias("max_over_mean")),
    ):
        joined = joined.join(part, on="run", how="left")
    return joined.fillna(0, subset=list(TOTALS)).withColumns(_ratios()).select("run", *TOTALS, *RATIOS)


def spans(counts: DataFrame) -> DataFrame:
    """How long each run lasted, first row to last; null if no time passed. → run, span"""
    span = F.col("ended_at") - F.col("began_at")
    return counts.select("run", F.when(span > 0, span).alias("span"))


def _ratios() -> dict[str, Column]:
    published = F.col("published")
    return {
        "packets_per_publication": F.try_divide("publication_packets", published),
        "all_packets_per_publication": F.try_divide("packets", published),
        "messages_per_publication": F.try_divide("messages_sent", published),
        "bytes_per_publication": F.try_divide("bytes", published),
        "aggregated_share": F.try_divide("aggregated_packets", "publication_packets"),
        "false_positive_share": F.try_divide("false_positives", "receptions"),
        "span": F.col("ended_at") - F.col("began_at"),
    }
