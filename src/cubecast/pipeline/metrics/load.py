"""How evenly the nodes share the work."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.keys import is_kind
from cubecast.trace.schema import Kind

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
