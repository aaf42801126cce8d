"""Topics of living nodes as DataFrames: `register(spark)`, then `spark.read` or `spark.readStream` of "cubecast"."""

from cubecast.spark.source import CubecastDataSource, register

__all__ = ["CubecastDataSource", "register"]
