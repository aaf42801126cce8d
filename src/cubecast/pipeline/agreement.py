"""Pass 3: the vectors of all subscriptions beside each other (P4, P4u)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

SIGMA = ("run", "topic", "node", "incarnation", "ordinal")


def vectors(replayed: DataFrame) -> DataFrame:
    """One row per subscription and publisher it stated or heard: its cut and the highest counter it delivered."""
    return (
        replayed.select(*SIGMA, "correct", F.arrays_zip("publisher", "cut", "last").alias("entry"))
        .where(F.col("topic").isNotNull())
        .select(*SIGMA, "correct", F.explode("entry").alias("entry"))
        .select(*SIGMA, "correct", "entry.publisher", "entry.cut", "entry.last")
    )


def tops(entries: DataFrame) -> DataFrame:
    """Per publisher of a topic: the highest counter any correct subscription delivered, and any at all."""
    return (
        entries.select("run", "topic", "publisher", "correct", "last")
        .groupBy("run", "topic", "publisher")
        .agg(F.max(F.when(F.col("correct"), F.col("last"))).alias("top"), F.max("last").alias("uniform_top"))
        .select("run", "topic", "publisher", "top", "uniform_top")
    )


def shortfalls(replayed: DataFrame) -> DataFrame:
    """Correct subscriptions that stay below the top of a publisher.

    `cut` is null where the subscription neither stated nor heard the publisher: then its implied cut decides.
    """
    entries = vectors(replayed)
    sigma = replayed.select(*SIGMA, "correct", "subscribed", "last_seq").where("correct")
    reached = entries.select(*SIGMA, "publisher", "cut", "last")
    return (
        sigma.join(tops(entries), on=["run", "topic"], how="inner")
        .join(reached, on=[*SIGMA, "publisher"], how="left")
        .where(F.col("uniform_top") > F.coalesce("last", F.lit(0)))
        .where(F.col("cut").isNull() | (F.col("uniform_top") > F.col("cut")))
        .select(*SIGMA, "subscribed", "last_seq", "publisher", "cut", "last", "top", "uniform_top")
    )
