"""Traffic, load, causal information, queues, buffers and subscriptions, numbers by hand."""

import pytest
from pyspark.testing import assertDataFrameEqual

from cubecast.pipeline.metrics.journeys import journeys
from cubecast.pipeline.metrics.latency import (
    barrier_sizes,
    buffer_per_node,
    buffer_steps,
    publication_packets,
    publications,
    subscription_counts,
    subscription_latencies,
    vector_sizes,
)
from cubecast.pipeline.metrics.measure import SERVICE_DDL
from cubecast.pipeline.metrics.traffic import (
    arrivals_by_outcome,
    balance,
    in_flight_per_node,
    load_per_node,
    output_queue,
    packet_sizes,
    queue_per_node,
    queue_values,
    traffic,
    transit_times,
    transits,
    unwanted,
)
from support.trace_rows import about, received, relayed_story, row, sent, trace

VALUES = "run string, metric string, value double"


@pytest.fixture(scope="module")
def story(spark):
    return trace(spark, relayed_story()).cache()


def test_traffic_counts_what_was_sent(story) -> None:
    (counted,) = traffic(story).collect()
    assert counted.asDict() == {
        "run": "r",
        "nodes": 3,
        "published": 2,
        "deliveries": 4,
        "packets": 5,
        "publication_packets": 4,
        "control_packets": 1,
        "aggregated_packets": 0,
        "messages_sent": 4,
        "bytes": 420,
        "gaps": 0,
        "discards": 0,
        "failed": 0,
        "events": 19,
        "began_at": 0.0,
        "ended_at": 60.0,
    }


def test_false_positives_and_relays_are_those_of_nodes_that_do_not_subscribe(spark, story) -> None:
    found = unwanted(publication_packets(story))
    assertDataFrameEqual(found, spark.createDataFrame([("r", 4, 1, 1)], found.schema))


def test_duplicates_and_what_never_arrived_by_name(spark, story) -> None:
    trips = journeys(story, publication_packets(story), publications(story))
    found = arrivals_by_outcome(trips)
    assertDataFrameEqual(found, spark.createDataFrame([("r", 1, 0, 0)], found.schema))


def test_packet_sizes(spark) -> None:
    rows = [row(0, 0, 1, "send", **about(0, 1), **sent(1, 1, messages=3, size=70)), row(0, 1, 1, "send", peer=1)]
    expected = [("r", "messages_per_packet", 3.0), ("r", "bytes_per_packet", 70.0)]
    found = packet_sizes(publication_packets(trace(spark, rows)))
    assertDataFrameEqual(found, spark.createDataFrame(expected, VALUES))


def test_load_counts_idle_nodes_and_gini_follows(spark) -> None:
    """Packets sent 0, 1, 5: Gini = (−2·0 + 0·1 + 2·5) / (3·6) = 10/18; busiest over mean = 5/2."""
    rows = [
        row(0, 0, 0, "start"),
        row(1, 0, 0, "send", **sent(0, 1, size=10)),
        *(row(2, i, 0, "send", **sent(0, 2 + i, size=10)) for i in range(5)),
    ]
    nodes = load_per_node(trace(spark, rows))
    expected = [("r", 0, 0, 0, 0, 0), ("r", 1, 1, 0, 10, 0), ("r", 2, 5, 0, 50, 0)]
    assertDataFrameEqual(nodes, spark.createDataFrame(expected, nodes.schema))
    shares = {one.load: (one.gini, one.max_over_mean) for one in balance(nodes).collect()}
    assert shares["packets_sent"] == pytest.approx((10 / 18, 2.5))
    assert shares["bytes_sent"] == pytest.approx((10 / 18, 2.5))
    assert shares["packets_received"] == (None, None)


def test_barriers_are_the_claimed_direct_dependencies(spark) -> None:
    rows = [
        row(0, 0, 0, "publish", **about(0, 1)),
        row(0, 1, 0, "publish", **about(0, 2), deps=[(0, 0, 1), (3, 0, 7)]),
        row(0, 2, 0, "publish", **about(0, 3), deps=[]),
    ]
    expected = [("r", "barrier_size", size) for size in (0.0, 2.0, 0.0)]
    assertDataFrameEqual(barrier_sizes(trace(spark, rows)), spark.createDataFrame(expected, VALUES))


def test_vectors_count_publishers_in_the_past_and_those_that_changed(spark) -> None:
    """0 hears 1 and 2, publishes; hears 2 twice and 3, publishes; hears nothing, publishes. Own entry included."""
    rows = [
        row(0, 0, 0, "deliver", **about(1, 1)),
        row(0, 1, 0, "deliver", **about(2, 1)),
        row(0, 2, 0, "publish", **about(0, 1)),
        row(0, 3, 0, "deliver", **about(0, 1)),
        row(0, 4, 0, "deliver", **about(2, 2)),
        row(0, 5, 0, "deliver", **about(3, 1)),
        row(0, 6, 0, "deliver", **about(2, 3)),
        row(0, 7, 0, "publish", **about(0, 2)),
        row(0, 8, 0, "publish", **about(0, 3)),
        row(0, 9, 0, "deliver", **about(9, 1, topic="other")),
    ]
    sizes = [("r", "vector_size", value) for value in (3.0, 4.0, 4.0)]
    changed = [("r", "vector_changed", value) for value in (3.0, 3.0, 1.0)]
    found = vector_sizes(trace(spark, reversed(rows)))
    assertDataFrameEqual(found, spark.createDataFrame([*sizes, *changed], VALUES))


@pytest.fixture(scope="module")
def busy_queue(spark):
    """Three packets at 0, one at 2.5, one at 20, two u.t. each: they leave at 2, 4, 6, 8 and 22."""
    times = (0, 0, 0, 2.5, 20)
    rows = [row(0, i, time, "send", **sent(1, i)) for i, time in enumerate(times)]
    service = spark.createDataFrame([("r", 2.0, True)], SERVICE_DDL)
    return output_queue(trace(spark, rows), service).cache()


def test_the_output_queue_is_rebuilt_from_hand_over_times(spark, busy_queue) -> None:
    found = busy_queue.select("seq", "queue_length", "waiting_time", "sojourn")
    expected = [(0, 1, 0.0, 2.0), (1, 2, 2.0, 4.0), (2, 3, 4.0, 6.0), (3, 3, 3.5, 5.5), (4, 1, 0.0, 2.0)]
    assertDataFrameEqual(found, spark.createDataFrame(expected, found.schema))
    assert queue_values(busy_queue).count() == 10


def test_control_packets_may_bypass_the_queue(spark) -> None:
    rows = [
        row(0, 0, 0, "send", peer=1, packet=1),
        *(row(0, i, 0, "send", **about(0, i), **sent(1, i)) for i in (1, 2)),
    ]
    for queued, lengths in ((True, [1, 2, 3]), (False, [1, 2])):
        service = spark.createDataFrame([("r", 2.0, queued)], SERVICE_DDL)
        found = output_queue(trace(spark, rows), service).orderBy("seq").collect()
        assert [one.queue_length for one in found] == lengths


def test_a_nodes_mean_queue_is_over_time(spark, busy_queue) -> None:
    spans = spark.createDataFrame([("r", 40.0)], "run string, span double")
    found = queue_per_node(busy_queue, spans)
    assertDataFrameEqual(found, spark.createDataFrame([("r", 0, 19.5 / 40, 2.0, 3)], found.schema))


def test_packets_in_flight_leave_with_their_arrival(spark) -> None:
    """Two under way from 1 to 5, the second arrives at 6; the third is handed over at that very moment; one is lost."""
    rows = [
        row(0, 0, 0, "send", **sent(1, 7)),
        row(0, 1, 1, "send", **sent(2, 7)),
        row(0, 2, 6, "send", **sent(1, 8)),
        row(0, 3, 6, "send", **sent(1, 9)),
        row(1, 0, 5, "receive", **received(0, 7)),
        row(1, 1, 5.5, "receive", **received(0, 7)),
        row(2, 0, 6, "receive", **received(0, 7)),
        row(1, 2, 9, "receive", **received(0, 8)),
    ]
    ways = transits(trace(spark, rows)).cache()
    assertDataFrameEqual(
        transit_times(ways), spark.createDataFrame([("r", "transit_time", x) for x in (5.0, 5.0, 3.0)], VALUES)
    )
    found = in_flight_per_node(ways)
    assertDataFrameEqual(found, spark.createDataFrame([("r", 0, 2, 1)], found.schema))


def test_the_buffer_is_a_step_function(spark) -> None:
    """(2,1) overtakes (0,1) it depends on: held from 10 to 14; (0,1) passes at 14; (0,2) arrives and never leaves."""
    rows = [
        *(row(source, 0, 0, "publish", **about(source, 1)) for source in (0, 2)),
        row(0, 1, 0, "publish", **about(0, 2)),
        row(1, 0, 10, "receive", **about(2, 1), **received(2, 1)),
        row(1, 1, 14, "receive", **about(0, 1), **received(0, 2)),
        row(1, 2, 14, "deliver", **about(0, 1)),
        row(1, 3, 14, "deliver", **about(2, 1)),
        row(1, 4, 15, "receive", **about(0, 2), **received(0, 3)),
    ]
    events = trace(spark, rows)
    trips = journeys(events, publication_packets(events), publications(events)).cache()
    steps = buffer_steps(trips).select("seq", "time", "held")
    expected = [(0, 10.0, 1), (1, 14.0, 2), (2, 14.0, 1), (3, 14.0, 0)]
    assertDataFrameEqual(steps, spark.createDataFrame(expected, steps.schema))
    per_node = buffer_per_node(trips, spark.createDataFrame([("r", 16.0)], "run string, span double"))
    assertDataFrameEqual(per_node, spark.createDataFrame([("r", 1, 2, 0.25)], per_node.schema))
    assert arrivals_by_outcome(trips).collect()[0].undelivered == 1


def test_a_confirmation_belongs_to_the_request_before_it(spark) -> None:
    rows = [
        row(0, 0, 1, "subscribe", topic="t"),
        row(0, 1, 2, "subscribe", topic="u"),
        row(0, 2, 4, "subscribed", topic="t"),
        row(0, 3, 5, "unsubscribe", topic="t"),
        row(0, 4, 7, "unsubscribed", topic="t"),
        row(0, 5, 10, "subscribe", topic="t"),
        row(0, 6, 18, "subscribed", topic="t"),
        row(1, 0, 3, "subscribed", topic="t"),
    ]
    events = trace(spark, reversed(rows))
    found = subscription_latencies(events).select("node", "topic", "metric", "value")
    expected = [
        (0, "t", "subscription_latency", 3.0),
        (0, "t", "unsubscription_latency", 2.0),
        (0, "t", "subscription_latency", 8.0),
    ]
    assertDataFrameEqual(found, spark.createDataFrame(expected, found.schema))
    counts = subscription_counts(events)
    assertDataFrameEqual(counts, spark.createDataFrame([("r", 3, 3, 1)], counts.schema))


def test_a_thousand_packets_at_once_wait_for_each_other(spark) -> None:
    rows = [row(0, i, 0, "send", **sent(1, i)) for i in range(1000)]
    service = spark.createDataFrame([("r", 0.1, True)], SERVICE_DDL)
    lengths = [one.queue_length for one in output_queue(trace(spark, rows), service).orderBy("seq").collect()]
    assert lengths == list(range(1, 1001))
