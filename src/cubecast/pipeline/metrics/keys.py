"""The names metrics group and join by, and what tells a publication's packet from a control packet."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from cubecast.trace.schema import Kind

NODE: Final = ("run", "node", "incarnation")
"""One local history: `seq` orders its rows."""

MESSAGE: Final = ("run", "topic", "source", "source_incarnation", "counter")
"""One publication."""

NODE_TOPIC: Final = (*NODE, "topic")


def is_kind(*kinds: Kind) -> Column:
    return F.col("kind").isin([kind.value for kind in kinds])


def carries_publication() -> Column:
    """On send and receive rows: control packets have no message inside."""
    return messages_inside() > 0


def is_named() -> Column:
    return F.col("source").isNotNull() & F.col("source_incarnation").isNotNull() & F.col("counter").isNotNull()


def messages_inside() -> Column:
    """How many; a row that lists none holds the one that it names."""
    alone = F.when(is_named() & F.col("topic").isNotNull(), 1).otherwise(0)
    return F.when(F.col("messages").isNotNull(), F.size("messages")).otherwise(alone)
