"""Publication loads: which topic the next publication belongs to, by Zipf's law or any exponent of it.

Topic ranks 1 … n have probability ∝ rank^−exponent (0: uniform). Ranks are drawn with Walker's alias method: one table
of n rows, one draw to choose a row, one to choose between the row and its alias. As a join that is exact, needs no
Python on the executors, and costs the same for every exponent.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cubecast.errors import BadInput
from cubecast.pipeline.workloads.chance import draw, draw_whole

WEB_EXPONENT = 0.825
"""Exponent of the multi-topic experiment of VCube-PS (§5.6.5)."""


@dataclass(frozen=True)
class ZipfLoad:
    publications: int
    topics: int
    publishers: int
    window: float
    """Publications fall uniformly in [0, window): what a Poisson process looks like once its count is known."""
    exponent: float = WEB_EXPONENT

    def __post_init__(self) -> None:
        for name in ("publications", "topics", "publishers"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, not {getattr(self, name)}")
        if not self.window > 0 or self.exponent < 0:
            raise BadInput(f"the window must be positive and the exponent not negative: {self.window}, {self.exponent}")


def zipf_load(spark: SparkSession, load: ZipfLoad, seed: int) -> DataFrame:
    """→ publication bigint, time double, publisher int, rank int (1 is the most popular topic)"""
    me = F.col("publication")
    drawn = (
        spark.range(load.publications)
        .withColumnRenamed("id", "publication")
        .select(
            "publication",
            (draw(seed, "time", me) * load.window).alias("time"),
            draw_whole(seed, "publisher", load.publishers, me).cast("int").alias("publisher"),
            draw_whole(seed, "slot", load.topics, me).alias("slot"),
            draw(seed, "side", me).alias("side"),
        )
    )
    table = alias_table(spark, zipf_probabilities(load.topics, load.exponent))
    rank = F.when(F.col("side") < F.col("keep"), F.col("slot")).otherwise(F.col("other")) + 1
    return drawn.join(F.broadcast(table), on="slot", how="inner").select(
        "publication", "time", "publisher", rank.cast("int").alias("rank")
    )


def zipf_probabilities(topics: int, exponent: float) -> npt.NDArray[np.float64]:
    weights = np.arange(1, topics + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def alias_table(spark: SparkSession, probabilities: npt.NDArray[np.float64]) -> DataFrame:
    """Walker's table: slot i stands for i with chance `keep`, else for `other`. → slot, keep, other"""
    keep, other = walker(probabilities)
    rows = zip(range(len(keep)), keep.tolist(), other.tolist(), strict=True)
    return spark.createDataFrame(list(rows), "slot bigint, keep double, other bigint")


def walker(probabilities: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Pair every slot poorer than average with a richer one that pays the difference."""
    keep = probabilities * len(probabilities)
    other = np.arange(len(probabilities), dtype=np.int64)
    poor = [int(i) for i in np.flatnonzero(keep < 1)]
    rich = [int(i) for i in np.flatnonzero(keep >= 1)]
    while poor and rich:
        receiver, giver = poor.pop(), rich[-1]
        other[receiver] = giver
        keep[giver] -= 1 - keep[receiver]
        if keep[giver] < 1:
            poor.append(rich.pop())
    keep[poor + rich] = 1.0  # what rounding left over
    return keep, other
