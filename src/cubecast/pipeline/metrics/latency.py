"""How long publications take, how many are held in between, and what they carry for it; how long subscriptions take to
be confirmed, and who wanted a publication.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.journeys import MESSAGE, NODE, NODE_TOPIC, carries_publication, is_kind, remote
from cubecast.trace.schema import Kind

_JOURNEY = ("node", "incarnation", "published_at", "received_at", "delivered_at", "subscribed")


def latencies(journeys: DataFrame) -> DataFrame:
    """Reception latency (at subscribers), delivery latency and holding time, away from the publisher.

    → run, metric, value
    """
    reception = F.when(F.col("subscribed"), F.col("received_at") - F.col("published_at"))
    measured = F.array(
        _named("reception_latency", reception),
        _named("delivery_latency", F.col("delivered_at") - F.col("published_at")),
        _named("holding_time", F.col("delivered_at") - F.col("received_at")),
    )
    return (
        journeys.select(*MESSAGE, *_JOURNEY)
        .where(remote())
        .select("run", F.explode(measured).alias("one"))
        .select("run", "one.metric", "one.value")
        .where(F.col("value").isNotNull())
    )


def completion_latency(journeys: DataFrame) -> DataFrame:
    """Per publication, until the last node that delivered it had it. → run, metric, value"""
    return (
        journeys.select(*MESSAGE, *_JOURNEY)
        .where(remote() & F.col("delivered_at").isNotNull() & F.col("published_at").isNotNull())
        .groupBy(*MESSAGE)
        .agg(F.max(F.col("delivered_at") - F.col("published_at")).alias("value"))
        .select("run", F.lit("completion_latency").alias("metric"), "value")
    )


def hops(journeys: DataFrame) -> DataFrame:
    """Distance from the source at each first arrival at a subscriber. → run, metric, value"""
    return (
        journeys.select("run", "hops", "subscribed")
        .where(F.col("subscribed") & F.col("hops").isNotNull())
        .select("run", F.lit("hops").alias("metric"), F.col("hops").cast("double").alias("value"))
    )


def _named(metric: str, value: Column) -> Column:
    return F.struct(F.lit(metric).alias("metric"), value.alias("value"))


# Messages received and not yet delivered, per node, as a step function over the node's own history.


def buffer_steps(journeys: DataFrame) -> DataFrame:
    """Occupancy after every arrival and delivery. A message passes through the buffer even if delivered at once.

    Only messages that were delivered in the end are counted: the trace does not say whether another one was still
    waited for or put aside, and `undelivered` counts those.

    → run, node, incarnation, seq, time, held
    """
    return _steps(journeys).select(*NODE, "seq", "time", "held")


def buffer_per_node(journeys: DataFrame, spans: DataFrame) -> DataFrame:
    """`held_mean`: average occupancy over the run's time (Little: holding times over span). `spans`: run, span.

    → run, node, held_max, held_mean
    """
    waited = F.sum(-F.col("step") * F.col("time"))
    return (
        _steps(journeys)
        .groupBy("run", "node")
        .agg(F.max("held").alias("held_max"), waited.alias("waited"))
        .join(F.broadcast(spans.select("run", "span")), on="run", how="inner")
        .select("run", "node", "held_max", F.try_divide("waited", "span").alias("held_mean"))
    )


def _steps(journeys: DataFrame) -> DataFrame:
    """→ run, node, incarnation, seq, time, step (+1 or −1), held"""
    so_far = Window.partitionBy(*NODE).orderBy("seq").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    came = F.struct(F.col("received_seq").alias("seq"), F.col("received_at").alias("time"), F.lit(1).alias("step"))
    went = F.struct(F.col("delivered_seq").alias("seq"), F.col("delivered_at").alias("time"), F.lit(-1).alias("step"))
    return (
        _held(journeys)
        .select(*NODE, F.explode(F.array(came, went)).alias("one"))
        .select(*NODE, "one.*")
        .withColumn("held", F.sum("step").over(so_far).cast("int"))
        .select(*NODE, "seq", "time", "step", "held")
    )


def _held(journeys: DataFrame) -> DataFrame:
    both = F.col("received_seq").isNotNull() & F.col("delivered_seq").isNotNull()
    times = ("received_seq", "received_at", "delivered_seq", "delivered_at")
    return (
        journeys.select(*NODE, "source", "source_incarnation", *times)
        .where(both & remote() & (F.col("received_seq") < F.col("delivered_seq")))
        .select(*NODE, *times)
    )


# How much causal information publications carry, and how much other representations would.


def barrier_sizes(events: DataFrame) -> DataFrame:
    """Direct dependencies each publication claims; a row without claims counts as none. → run, metric, value"""
    size = F.coalesce(F.size("deps"), F.lit(0))
    return (
        events.select("run", "kind", "deps")
        .where(is_kind(Kind.PUBLISH))
        .select("run", F.lit("barrier_size").alias("metric"), F.greatest(size, F.lit(0)).cast("double").alias("value"))
    )


def vector_sizes(events: DataFrame) -> DataFrame:
    """Entries a vector clock would need on each publication, the publisher's own included.

    `vector_size`: every publisher in the causal past. `vector_changed`: only those heard from since this node's
    previous publication on the topic, which is Birman's compression. Both count what the publisher had delivered,
    read from its own history, not from claims.

    → run, metric, value
    """
    history = Window.partitionBy(*NODE_TOPIC).orderBy("seq")
    so_far = history.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    counted = (
        _publish_and_foreign_deliver_rows(events)
        .withColumn("previous", F.lag("seq").over(_one_source()))
        .withColumn("last_publish", F.max(F.when(_publishes(), F.col("seq"))).over(so_far))
        .withColumn("new", ~_publishes() & F.col("previous").isNull())
        .withColumn("again", ~_publishes() & (F.col("previous") < F.col("last_publish")))
        .withColumn("width", F.sum(F.col("new").cast("int")).over(so_far))
        .withColumn("changes", F.sum((F.col("new") | F.coalesce("again", F.lit(False))).cast("int")).over(so_far))
        .where(_publishes())
        .withColumn("changed", F.col("changes") - F.coalesce(F.lag("changes").over(history), F.lit(0)))
    )
    both = F.create_map(F.lit("vector_size"), F.col("width") + 1, F.lit("vector_changed"), F.col("changed") + 1)
    return counted.select("run", F.explode(both).alias("metric", "value")).select(
        "run", "metric", F.col("value").cast("double").alias("value")
    )


def _publish_and_foreign_deliver_rows(events: DataFrame) -> DataFrame:
    """Partitioned once by (node, topic): both windows above then sort in place instead of shuffling twice."""
    foreign = (F.col("source") != F.col("node")) | (F.col("source_incarnation") != F.col("incarnation"))
    return (
        events.select(*NODE_TOPIC, "seq", "kind", "source", "source_incarnation")
        .where(is_kind(Kind.PUBLISH) | (is_kind(Kind.DELIVER) & foreign))
        .repartition(*NODE_TOPIC)
    )


def _one_source() -> Window:
    return Window.partitionBy(*NODE_TOPIC, "source", "source_incarnation").orderBy("seq")


def _publishes() -> Column:
    return is_kind(Kind.PUBLISH)


# How long a subscription takes to be confirmed, who wanted a publication, when publications were made.

_PAIRS = {Kind.SUBSCRIBE: Kind.SUBSCRIBED, Kind.UNSUBSCRIBE: Kind.UNSUBSCRIBED}


def subscription_latencies(events: DataFrame) -> DataFrame:
    """From `subscribe` to the next `subscribed` of that node and topic, and the same for unsubscribing.

    A node may subscribe again after leaving, so a confirmation belongs to the request just before it, in the node's
    own order. Confirmations nobody asked for and requests never confirmed give no row.

    → run, node, incarnation, topic, metric, value
    """
    history = Window.partitionBy(*NODE_TOPIC).orderBy("seq")
    rows = (
        events.select(*NODE_TOPIC, "seq", "time", "kind")
        .where(is_kind(*_PAIRS, *_PAIRS.values()))
        .withColumn("asked", F.lag("kind").over(history))
        .withColumn("asked_at", F.lag("time").over(history))
    )
    subscribed = is_kind(Kind.SUBSCRIBED) & (F.col("asked") == Kind.SUBSCRIBE.value)
    unsubscribed = is_kind(Kind.UNSUBSCRIBED) & (F.col("asked") == Kind.UNSUBSCRIBE.value)
    metric = F.when(subscribed, "subscription_latency").when(unsubscribed, "unsubscription_latency")
    return (
        rows.withColumn("metric", metric)
        .where(F.col("metric").isNotNull())
        .select(*NODE_TOPIC, "metric", (F.col("time") - F.col("asked_at")).alias("value"))
    )


def subscription_counts(events: DataFrame) -> DataFrame:
    """Requests and confirmations per run. → run, subscribes, subscribed, unsubscribes"""
    return (
        events.select("run", "kind")
        .where(is_kind(Kind.SUBSCRIBE, Kind.SUBSCRIBED, Kind.UNSUBSCRIBE))
        .groupBy("run")
        .agg(
            F.count(F.when(is_kind(Kind.SUBSCRIBE), True)).alias("subscribes"),
            F.count(F.when(is_kind(Kind.SUBSCRIBED), True)).alias("subscribed"),
            F.count(F.when(is_kind(Kind.UNSUBSCRIBE), True)).alias("unsubscribes"),
        )
        .select("run", "subscribes", "subscribed", "unsubscribes")
    )


# Who wanted a publication when its packet passed: the difference between a subscriber and a relay.

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


# Every publication of a trace with the time it happened: what latencies are measured from.


def publications(events: DataFrame) -> DataFrame:
    """→ run, topic, source, source_incarnation, counter, published_at. A repeated row counts once, the earliest."""
    return (
        events.select(*MESSAGE, "kind", "time")
        .where(is_kind(Kind.PUBLISH))
        .groupBy(*MESSAGE)
        .agg(F.min("time").alias("published_at"))
        .select(*MESSAGE, "published_at")
    )
