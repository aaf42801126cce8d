"""Who wanted a publication when its packet passed: the difference between a subscriber and a relay."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.keys import NODE_TOPIC, carries_publication, is_kind
from cubecast.trace.schema import Kind

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
