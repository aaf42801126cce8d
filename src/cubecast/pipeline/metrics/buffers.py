"""Messages received and not yet delivered, per node, as a step function over the node's own history."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.journeys import remote
from cubecast.pipeline.metrics.keys import NODE


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
