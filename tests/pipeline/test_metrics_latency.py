"""Journeys and latencies on a story of three nodes, numbers by hand."""

import pytest
from pyspark.testing import assertDataFrameEqual

from cubecast.pipeline.metrics.journeys import journeys
from cubecast.pipeline.metrics.latency import completion_latency, hops, latencies, publication_packets, publications
from support.trace_rows import about, received, relayed_story, row, sent, trace

VALUES = "run string, metric string, value double"


def trips(spark, rows):
    events = trace(spark, rows)
    return journeys(events, publication_packets(events), publications(events))


@pytest.fixture(scope="module")
def story(spark):
    return trips(spark, relayed_story()).cache()


def test_publications_count_once_with_their_earliest_time(spark) -> None:
    rows = [row(0, 0, 3, "publish", **about(0, 1)), row(0, 0, 2, "publish", **about(0, 1))]
    expected = spark.createDataFrame(
        [("r", "t", 0, 0, 1, 2.0)],
        "run string, topic string, source bigint, source_incarnation int, counter bigint, published_at double",
    )
    assertDataFrameEqual(publications(trace(spark, rows)), expected)


def test_a_journey_knows_when_it_was_received_and_delivered(spark, story) -> None:
    seen = story.select("node", "source", "published_at", "received_at", "delivered_at", "hops", "subscribed", "copies")
    expected = spark.createDataFrame(
        [
            (0, 0, 10.0, None, 10.0, None, None, 0),
            (0, 2, 40.0, 50.0, 50.0, 1, True, 2),
            (1, 0, 10.0, 20.0, None, 1, False, 1),
            (2, 0, 10.0, 30.0, 35.0, 2, True, 1),
            (2, 2, 40.0, None, 40.0, None, None, 0),
        ],
        "node bigint, source bigint, published_at double, received_at double, delivered_at double, hops int, "
        "subscribed boolean, copies bigint",
    )
    assertDataFrameEqual(seen, expected)


def test_latencies_leave_out_relays_and_the_publisher_itself(spark, story) -> None:
    expected = [
        ("r", "reception_latency", 20.0),
        ("r", "delivery_latency", 25.0),
        ("r", "holding_time", 5.0),
        ("r", "reception_latency", 10.0),
        ("r", "delivery_latency", 10.0),
        ("r", "holding_time", 0.0),
    ]
    assertDataFrameEqual(latencies(story), spark.createDataFrame(expected, VALUES))


def test_completion_is_the_last_delivery_of_a_publication(spark) -> None:
    rows = [
        row(0, 0, 1, "publish", **about(0, 1)),
        row(1, 0, 5, "deliver", **about(0, 1)),
        row(2, 0, 9, "deliver", **about(0, 1)),
    ]
    expected = spark.createDataFrame([("r", "completion_latency", 8.0)], VALUES)
    assertDataFrameEqual(completion_latency(trips(spark, rows)), expected)


def test_hops_are_those_of_first_arrivals_at_subscribers(spark, story) -> None:
    assertDataFrameEqual(hops(story), spark.createDataFrame([("r", "hops", 1.0), ("r", "hops", 2.0)], VALUES))


def test_a_batch_arrives_whole(spark) -> None:
    rows = [
        *(row(0, i, 10 + i, "publish", **about(0, i + 1)) for i in range(3)),
        row(1, 0, 20, "receive", **about(0, 1), **received(0, 1, messages=3)),
        *(row(1, 1 + i, 21, "deliver", **about(0, i + 1)) for i in range(3)),
    ]
    found = trips(spark, rows).where("node = 1").select("counter", "received_at", "copies")
    expected = spark.createDataFrame([(1, 20.0, 1), (2, 20.0, 1), (3, 20.0, 1)], found.schema)
    assertDataFrameEqual(found, expected)


def test_a_packet_of_several_publishers_and_topics_tells_of_each_message(spark) -> None:
    """Its row names none of them and no topic; (0,2) comes a second time, alone."""
    inside = [("t", 0, 0, 1), ("t", 0, 0, 2), ("u", 5, 0, 1)]
    rows = [
        row(0, 0, 1, "publish", **about(0, 1)),
        row(0, 1, 2, "publish", **about(0, 2)),
        row(5, 0, 1, "publish", **about(5, 1, "u")),
        row(1, 0, 20, "receive", peer=0, packet=1, messages=inside, bytes=100, hops=1),
        row(1, 1, 21, "deliver", **about(5, 1, "u")),
        row(1, 2, 30, "receive", **about(0, 2), **received(0, 2)),
    ]
    found = trips(spark, rows).select("topic", "source", "counter", "received_at", "delivered_at", "copies")
    expected = [("t", 0, 1, 20.0, None, 1), ("t", 0, 2, 20.0, None, 2), ("u", 5, 1, 20.0, 21.0, 1)]
    assertDataFrameEqual(found, spark.createDataFrame(expected, found.schema))


def test_interest_follows_the_nodes_own_order(spark) -> None:
    """Wanted between the requests to subscribe and to unsubscribe; other topics do not matter."""
    rows = [
        row(1, 0, 0, "receive", **about(0, 1), **received(0, 1)),
        row(1, 1, 0, "subscribe", topic="t"),
        row(1, 2, 0, "receive", **about(0, 2), **received(0, 2)),
        row(1, 3, 0, "unsubscribe", topic="t"),
        row(1, 4, 0, "receive", **about(0, 3), **received(0, 3)),
        row(1, 5, 0, "unsubscribed", topic="t"),
        row(1, 6, 0, "send", **about(0, 3), **sent(2, 4)),
        row(1, 7, 0, "receive", **about(0, 1, topic="broadcast"), **received(0, 5)),
    ]
    found = publication_packets(trace(spark, reversed(rows))).select("seq", "subscribed")
    expected = spark.createDataFrame([(0, False), (2, True), (4, False), (6, False), (7, True)], found.schema)
    assertDataFrameEqual(found, expected)
