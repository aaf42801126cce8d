"""Judges and measures traces where it is quickest: small ones in this process, large ones on Spark.

What is wrong with the input is said first, before a session is asked for: starting one takes seconds.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import SparkSession

from cubecast.pipeline.in_memory import fits
from cubecast.pipeline.metrics.in_memory.measure import measure_in_memory
from cubecast.pipeline.metrics.measure import measure_runs
from cubecast.pipeline.metrics.results import Metrics
from cubecast.pipeline.metrics.source import measurable, read_headers
from cubecast.pipeline.staging import Run, checked_properties, find_runs, require_new
from cubecast.pipeline.verdict import Verification
from cubecast.pipeline.verify import verify

Tell: TypeAlias = Callable[[str], None]


class SparkIfAsked:
    """Gives a session for runs that are too large for this process, or when the user named a master or an option."""

    def __init__(self, master: str | None, conf: Iterable[tuple[str, str]], jvm: str = "") -> None:
        self._master = master
        self._conf = tuple(conf)
        self._jvm = jvm

    def session(self, runs: Sequence[Run], tell: Tell, *, apart: bool = False) -> SparkSession | None:
        """None: this process does it. `apart`: it can only if no file holds rows of another run."""
        if self._master is None and not self._conf and fits(runs, apart=apart):
            return None
        from cubecast.pipeline.session import spark_session

        tell("starting Spark")
        return spark_session(self._master, self._conf, self._jvm)


def verify_traces(
    directories: Sequence[Path], properties: Sequence[str] | None, spark: SparkIfAsked, tell: Tell
) -> Verification:
    runs = find_runs(directories)
    checked_properties(runs, properties)
    return verify(spark.session(runs, tell), directories, properties, tell)


def measure_traces(directories: Sequence[Path], spark: SparkIfAsked, tell: Tell, out: Path | None = None) -> Metrics:
    """`out`: where every table is written."""
    if out is not None:
        require_new(out)
    runs, refused = measurable(find_runs(directories))
    session = spark.session(runs, tell, apart=True)
    headers = read_headers(runs)
    if session is None:
        found = measure_in_memory(runs, headers, refused, tell)
    else:
        found = measure_runs(session, runs, headers, refused, tell)
    if out is not None:
        tell(f"writing tables below {out}")
        found.write(out)
    return found
