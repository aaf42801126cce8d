"""One run's rows as a pandas frame: numbers without gaps, rows in the order of their logs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cubecast.errors import TraceError
from cubecast.trace.schema import Kind

ABSENT = np.iinfo(np.int64).min
"""What an integer column holds where the trace has null: pandas would turn the whole column into floats."""
_WHOLE = ("node", "incarnation", "seq", "source", "source_incarnation", "counter", "peer", "packet")
_SIZES = ("messages", "bytes", "hops")
COLUMNS = (*_WHOLE, *_SIZES, "time", "kind", "topic", "deps")
MESSAGE = ["topic", "source", "source_incarnation", "counter"]


def read_rows(paths: Sequence[str]) -> pd.DataFrame:
    """Rows of all files → the columns above, `topic` as a number (−1: none), `deps` as its length, and `log`.

    Sorted by log and `seq`. Rows without node, incarnation or seq belong to no log and are left out.
    """
    table = pa.concat_tables([_read(path) for path in paths])
    frame = {name: pc.fill_null(table.column(name), ABSENT).to_numpy() for name in (*_WHOLE, *_SIZES)}
    frame["time"] = table.column("time").to_numpy()
    frame["kind"] = table.column("kind").to_numpy(zero_copy_only=False)
    topics = table.column("topic").combine_chunks().dictionary_encode()
    frame["topic"] = pc.fill_null(topics.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    frame["deps"] = pc.fill_null(table.column("deps"), 0).to_numpy().astype(np.int64)
    rows = pd.DataFrame(frame)
    placed = (rows["node"] != ABSENT) & (rows["incarnation"] != ABSENT) & (rows["seq"] != ABSENT)
    rows = rows[placed].sort_values(["node", "incarnation", "seq"], kind="stable", ignore_index=True)
    rows["log"] = rows.groupby(["node", "incarnation"], sort=False).ngroup()
    return rows


def _read(path: str) -> pa.Table:
    try:
        table = pq.read_table(path, columns=list(COLUMNS))
        columns = {name: table.column(name).cast(pa.int64()) for name in (*_WHOLE, *_SIZES)}
        columns |= {name: table.column(name).cast(pa.string()) for name in ("kind", "topic")}
        for name in ("kind", "topic"):
            columns[name].validate(full=True)
        columns["time"] = table.column("time").cast(pa.float64())
        deps = table.column("deps")
        columns["deps"] = deps.cast(pa.int64()) if pa.types.is_null(deps.type) else pc.list_value_length(deps)
        return pa.table(columns)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise TraceError(f"{path} cannot be read to its end ({reason}); the trace was cut short or damaged") from None


def of_kind(rows: pd.DataFrame, *kinds: Kind) -> pd.Series:
    return rows["kind"].isin([kind.value for kind in kinds])


def carries_publication(rows: pd.DataFrame) -> pd.Series:
    """On send and receive rows: control packets name no topic, and no message."""
    return (rows["topic"] >= 0) & (rows["counter"] != ABSENT)


def known(values: pd.Series, otherwise: int) -> pd.Series:
    return values.where(values != ABSENT, otherwise)


def remote(rows: pd.DataFrame) -> pd.Series:
    """About a message of another node: a publisher's own copy travels nowhere."""
    return (rows["node"] != rows["source"]) | (rows["incarnation"] != rows["source_incarnation"])
