"""Randomness that depends on the seed and on names only: never on partitions, order or time of execution."""

from pyspark.sql import Column
from pyspark.sql import functions as F

_BITS = 53  # of a double's mantissa


def draw(seed: int, purpose: str, *names: Column) -> Column:
    """A number uniform in [0, 1), the same wherever and whenever these names are asked about.

    `purpose` keeps draws about the same names apart.
    """
    hashed = F.xxhash64(F.lit(seed).cast("bigint"), F.lit(purpose), *names)
    return F.shiftrightunsigned(hashed, 64 - _BITS) * F.lit(2.0**-_BITS)


def draw_whole(seed: int, purpose: str, size: int, *names: Column) -> Column:
    """A whole number uniform in 0 … size − 1."""
    return F.floor(draw(seed, purpose, *names) * size).cast("bigint")
