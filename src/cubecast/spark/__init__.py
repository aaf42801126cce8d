"""Topics of living nodes as DataFrames and the other way round, and the judges on DataFrames.

`register(spark)`, then `spark.read`, `spark.readStream`, `df.write` and `df.writeStream` of "cubecast". `verify` and
`metrics` take traces as DataFrames; they are loaded when asked for, because every worker of a query imports this module
and needs none of them.
"""

from typing import TYPE_CHECKING, Any

from cubecast.spark.source import CubecastDataSource, register

if TYPE_CHECKING:
    from cubecast.spark.judging import metrics, verdicts, verify, witnesses
    from cubecast.spark.tables import read_table, write_table

JUDGING = ("metrics", "verdicts", "verify", "witnesses")
__all__ = [
    "CubecastDataSource",
    "metrics",
    "read_table",
    "register",
    "verdicts",
    "verify",
    "witnesses",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cubecast.spark import judging, tables

    return getattr(judging if name in JUDGING else tables, name)
