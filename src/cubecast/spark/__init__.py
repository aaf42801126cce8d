"""Topics of living nodes as DataFrames and the other way round, and the judges on DataFrames.

`register(spark)`, then `spark.read`, `spark.readStream`, `df.write` and `df.writeStream` of "cubecast". `verify` and
`metrics` take traces as DataFrames.
"""

from cubecast.spark.judging import metrics, verdicts, verify, witnesses
from cubecast.spark.source import CubecastDataSource, register

__all__ = ["CubecastDataSource", "metrics", "register", "verdicts", "verify", "witnesses"]
