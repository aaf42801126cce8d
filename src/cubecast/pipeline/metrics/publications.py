"""Every publication of a trace with the time it happened: what latencies are measured from."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cubecast.pipeline.metrics.keys import MESSAGE, is_kind
from cubecast.trace.schema import Kind


def publications(events: DataFrame) -> DataFrame:
    """→ run, topic, source, source_incarnation, counter, published_at. A repeated row counts once, the earliest."""
    return (
        events.select(*MESSAGE, "kind", "time")
        .where(is_kind(Kind.PUBLISH))
        .groupBy(*MESSAGE)
        .agg(F.min("time").alias("published_at"))
        .select(*MESSAGE, "published_at")
    )
