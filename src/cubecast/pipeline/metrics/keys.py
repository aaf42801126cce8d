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
    """On send and receive rows: control packets name no topic, and no message."""
    return F.col("topic").isNotNull() & F.col("counter").isNotNull()
