"""The tables a measurement consists of, put together from the themes: totals, distributions, histograms, nodes."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.journeys import journeys
from cubecast.pipeline.metrics.latency import (
    barrier_sizes,
    buffer_per_node,
    completion_latency,
    hops,
    latencies,
    publication_packets,
    publications,
    subscription_counts,
    subscription_latencies,
    vector_sizes,
)
from cubecast.pipeline.metrics.traffic import (
    COUNTS,
    LOADS,
    arrivals_by_outcome,
    balance,
    in_flight_per_node,
    load_per_node,
    output_queue,
    packet_sizes,
    queue_per_node,
    queue_values,
    transit_times,
    transits,
    unwanted,
)

PER_NODE: Final = (
    *(*LOADS, "deliveries", "queue_mean", "queue_joined_mean", "queue_max"),
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
TIMED: Final = ("reception_latency", "delivery_latency", "holding_time")
"""Metrics whose whole distribution is worth a curve."""


class Stages(NamedTuple):
    """Frames several tables need; the measurement keeps them while it does."""

    events: DataFrame
    packets: DataFrame
    journeys: DataFrame
    transits: DataFrame
    queue: DataFrame


def stages(events: DataFrame, service: DataFrame) -> Stages:
    """`service`: run, transmission_time, queued_control, for the runs that have an output queue."""
    packets = publication_packets(events).persist()
    trips = journeys(events, packets, publications(events)).persist()
    return Stages(events, packets, trips, transits(events).persist(), output_queue(events, service).persist())


def values(stage: Stages) -> DataFrame:
    """Everything that is a distribution over messages or packets. → run, metric, value"""
    return _together(
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


def nodes(stage: Stages, spans: DataFrame, queued: Sequence[str]) -> DataFrame:
    """One row per node that wrote rows. What cannot be known is null (queues outside of the runs in `queued`), what
    did not happen is 0. `spans`: run, span. One pivot of all facts instead of a join per theme.

    → run, node, packets_sent, packets_received, bytes_sent, deliveries, queue_mean, queue_joined_mean, queue_max,
    in_flight_max, lost, held_max, held_mean: all double
    """
    facts = _together(
        _long(load_per_node(stage.events), "run", "node"),
        _long(queue_per_node(stage.queue, spans), "run", "node"),
        _long(in_flight_per_node(stage.transits), "run", "node"),
        _long(buffer_per_node(stage.journeys, spans), "run", "node"),
    )
    known = F.col("run").isin(list(queued))
    wide = facts.groupBy("run", "node").pivot("metric", list(PER_NODE)).agg(F.first("value"))
    filled = {name: F.coalesce(F.col(name), F.lit(0.0)) for name in PER_NODE}
    queues = {name: F.when(known, filled[name]) for name in PER_NODE if name.startswith("queue_")}
    return wide.withColumns({**filled, **queues}).select("run", "node", *PER_NODE)


def node_values(per_node: DataFrame) -> DataFrame:
    """Per-node numbers as distributions over nodes, `node_` before the name. → run, metric, value"""
    return (
        _long(per_node, "run", "node")
        .where(F.col("value").isNotNull())
        .select("run", F.concat(F.lit("node_"), "metric").alias("metric"), "value")
    )


def counted(stage: Stages, per_node: DataFrame) -> DataFrame:
    """What is counted per run beside `traffic`, and the balance of load. → run, metric, value"""
    shares = _long(balance(per_node), "run", "load")
    return _together(
        _long(unwanted(stage.packets), "run"),
        _long(arrivals_by_outcome(stage.journeys), "run"),
        _long(subscription_counts(stage.events), "run"),
        _long(per_node.groupBy("run").agg(F.sum("lost").alias("lost_packets")), "run"),
        shares.select("run", F.concat_ws("_", "load", "metric").alias("metric"), "value"),
    )


def ratios(total: Mapping[str, Any]) -> dict[str, float | None]:
    """Of one run's totals."""

    def over(part: str, whole: str) -> float | None:
        return total[part] / total[whole] if total[whole] else None

    return {
        "packets_per_publication": over("publication_packets", "published"),
        "all_packets_per_publication": over("packets", "published"),
        "messages_per_publication": over("messages_sent", "published"),
        "bytes_per_publication": over("bytes", "published"),
        "aggregated_share": over("aggregated_packets", "publication_packets"),
        "false_positive_share": over("false_positives", "receptions"),
        "span": total["ended_at"] - total["began_at"],
    }


def _long(frame: DataFrame, *keys: str) -> DataFrame:
    """Every column but the keys as a row of its own. → keys…, metric, value"""
    names = [name for name in frame.columns if name not in keys]
    doubles = frame.select(*keys, *(F.col(name).cast("double").alias(name) for name in names))
    return doubles.unpivot(list(keys), names, "metric", "value")


def _together(*frames: DataFrame) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
