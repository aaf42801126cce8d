"""One run's rows as a pandas frame, rows in the order of their logs, and the journeys of its publications."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cubecast.errors import TraceError
from cubecast.trace.schema import MOST_COUNTED, Kind

ABSENT = np.iinfo(np.int64).min
"""What an integer column holds where the trace has null: pandas would turn the whole column into floats."""
_WHOLE = ("node", "incarnation", "seq", "source", "source_incarnation", "counter", "peer", "packet")
_SIZES = ("bytes", "hops")
COLUMNS = (*_WHOLE, *_SIZES, "time", "kind", "topic", "deps", "messages")
MESSAGE = ["topic", "source", "source_incarnation", "counter"]
_CONTENTS = pa.list_(pa.struct([(name, pa.string() if name == "topic" else pa.int64()) for name in MESSAGE]))


def read_rows(paths: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of all files → the columns above, `topic` as a number (−1: none), `deps` as its length, `messages` as how
    many are inside a packet, and `log`; and what is inside packets → the columns of MESSAGE, by the row of the packet.

    Sorted by log and `seq`. Rows without node, incarnation or seq belong to no log and are left out.
    """
    table = pa.concat_tables([_read(path) for path in paths]).combine_chunks()
    frame = {name: pc.fill_null(table.column(name), ABSENT).to_numpy() for name in (*_WHOLE, *_SIZES)}
    frame["time"] = table.column("time").to_numpy()
    frame["kind"] = table.column("kind").to_numpy(zero_copy_only=False)
    lists = table.column("messages").combine_chunks()
    inside = lists.flatten()
    told = pc.struct_field(inside, "topic")
    words = pa.chunked_array([*table.column("topic").chunks, told]).combine_chunks().dictionary_encode()
    topics = pc.fill_null(words.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    frame["topic"] = topics[: table.num_rows]
    frame["deps"] = pc.fill_null(table.column("deps"), 0).to_numpy().astype(np.int64)
    frame["messages"] = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    rows = pd.DataFrame(frame)
    placed = (rows["node"] != ABSENT) & (rows["incarnation"] != ABSENT) & (rows["seq"] != ABSENT)
    rows = rows[placed].sort_values(["node", "incarnation", "seq"], kind="stable")
    place = np.full(table.num_rows, -1)
    place[rows.index] = np.arange(len(rows))
    owner = np.repeat(np.arange(table.num_rows), frame["messages"])
    ids = {name: pc.struct_field(inside, name).to_numpy(zero_copy_only=False) for name in MESSAGE[1:]}
    own = topics[table.num_rows :]
    contents = pd.DataFrame({"topic": np.where(own < 0, frame["topic"][owner], own), **ids}, index=place[owner])
    rows = rows.reset_index(drop=True)
    rows["log"] = rows.groupby(["node", "incarnation"], sort=False).ngroup()
    return rows, contents[contents.index >= 0]


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
        columns["messages"] = _contents(table, columns).cast(_CONTENTS)
        return pa.table(columns)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise TraceError(f"{path} cannot be read to its end ({reason}); the trace was cut short or damaged") from None


def _contents(table: pa.Table, columns: dict[str, pa.ChunkedArray]) -> pa.Array:
    """What is inside each packet. Where a row does not list it: the message that it names, and as many more of its
    publisher as an older trace's count says."""
    column = table.column("messages").combine_chunks()
    listed = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if listed and not column.null_count:
        return column
    parts = [columns[name].combine_chunks() for name in MESSAGE[1:]]
    packet = pc.is_in(columns["kind"].combine_chunks(), pa.array([Kind.SEND.value, Kind.RECEIVE.value]))
    named = np.logical_and.reduce([part.is_valid().to_numpy(zero_copy_only=False) for part in parts])
    named &= packet.to_numpy(zero_copy_only=False) & columns["topic"].combine_chunks().is_valid().to_numpy(False)
    count = np.ones(table.num_rows, np.int64)
    if not listed and not pa.types.is_null(column.type):
        count = np.clip(pc.fill_null(column.cast(pa.int64()), 1).to_numpy(zero_copy_only=False), 1, MOST_COUNTED)
    count = np.where(named, count, 0)
    ends = np.cumsum(count)
    ids = [np.repeat(pc.fill_null(part, 0).to_numpy(zero_copy_only=False), count) for part in parts]
    ids[2] = ids[2] + np.arange(len(ids[2])) - np.repeat(ends - count, count)
    inside = pa.StructArray.from_arrays([pa.nulls(len(ids[0]), pa.string()), *map(pa.array, ids)], names=MESSAGE)
    alone = pa.ListArray.from_arrays(pa.array(np.concatenate(([0], ends)), pa.int32()), inside).cast(_CONTENTS)
    return pc.coalesce(column.cast(_CONTENTS), alone) if listed else alone


def of_kind(rows: pd.DataFrame, *kinds: Kind) -> pd.Series:
    return rows["kind"].isin([kind.value for kind in kinds])


def carries_publication(rows: pd.DataFrame) -> pd.Series:
    """On send and receive rows: control packets have no message inside."""
    return rows["messages"] > 0


def known(values: pd.Series, otherwise: int) -> pd.Series:
    return values.where(values != ABSENT, otherwise)


def remote(rows: pd.DataFrame) -> pd.Series:
    """About a message of another node: a publisher's own copy travels nowhere."""
    return (rows["node"] != rows["source"]) | (rows["incarnation"] != rows["source_incarnation"])


# Where each publication went and how long it took; `pipeline/metrics/journeys.py` says what the rows mean.

_WHO_WHAT = ["log", "node", "incarnation", *MESSAGE]


def publication_packets(rows: pd.DataFrame) -> pd.DataFrame:
    """Send and receive rows that carry a publication, with `subscribed`: did this node want the topic just then?"""
    begins, ends = of_kind(rows, Kind.SUBSCRIBE, Kind.SUBSCRIBED), of_kind(rows, Kind.UNSUBSCRIBE, Kind.UNSUBSCRIBED)
    packets = of_kind(rows, Kind.SEND, Kind.RECEIVE) & carries_publication(rows)
    some = rows[packets | begins | ends].copy()
    some["state"] = np.where(begins[some.index], 1.0, np.where(ends[some.index], 0.0, np.nan))
    some["state"] = some.groupby(["log", "topic"], sort=False)["state"].ffill()
    chosen = rows.loc[begins | ends, "topic"].unique()
    some = some[packets[some.index]]
    broadcast = ~some["topic"].isin(chosen)
    subscribed = np.where(some["state"].isna(), broadcast, some["state"] == 1.0)
    return some.drop(columns="state").assign(subscribed=subscribed.astype(bool))


def journeys(rows: pd.DataFrame, packets: pd.DataFrame, contents: pd.DataFrame) -> pd.DataFrame:
    """One row per publication and node it reached: published, first received, delivered; what is unknown is NaN."""
    published = rows[of_kind(rows, Kind.PUBLISH)].groupby(MESSAGE, sort=False)["time"].min().rename("published_at")
    arrivals = _arrivals(packets, contents)
    first = arrivals.sort_values("seq", kind="stable").drop_duplicates(_WHO_WHAT)
    copies = arrivals.groupby(_WHO_WHAT, sort=False).size().rename("copies")
    delivered = rows.loc[of_kind(rows, Kind.DELIVER), [*_WHO_WHAT, "seq", "time"]].drop_duplicates(_WHO_WHAT)
    delivered = delivered.rename(columns={"seq": "delivered_seq", "time": "delivered_at"})
    trips = first.merge(delivered, on=_WHO_WHAT, how="outer")
    trips = trips.merge(copies, on=_WHO_WHAT, how="left").merge(published, on=MESSAGE, how="left")
    trips = trips.rename(columns={"came_at": "received_at", "seq": "received_seq"})
    trips["hops"] = trips["hops"].where(trips["hops"] != ABSENT)
    trips["subscribed"] = trips["subscribed"].eq(True)
    trips["copies"] = trips["copies"].fillna(0)
    return trips


def _arrivals(packets: pd.DataFrame, contents: pd.DataFrame) -> pd.DataFrame:
    """Receive rows, one per message inside."""
    columns = ["log", "node", "incarnation", "seq", "time", "hops", "subscribed"]
    received = packets.loc[of_kind(packets, Kind.RECEIVE), columns]
    each = received.join(contents, how="inner").rename(columns={"time": "came_at"})
    return each.reset_index(drop=True)


def latencies(trips: pd.DataFrame) -> dict[str, pd.Series]:
    away = trips[remote(trips)]
    delivery = (away["delivered_at"] - away["published_at"]).dropna()
    completed = delivery.groupby([away.loc[delivery.index, name] for name in MESSAGE]).max()
    return {
        "reception_latency": (away["received_at"] - away["published_at"])[away["subscribed"]].dropna(),
        "delivery_latency": delivery,
        "holding_time": (away["delivered_at"] - away["received_at"]).dropna(),
        "completion_latency": completed,
        "hops": trips.loc[trips["subscribed"] & trips["hops"].notna(), "hops"].astype(float),
    }


def buffers(trips: pd.DataFrame, span: float | None) -> pd.DataFrame:
    """Messages received and not yet delivered. → by node: held_max, held_mean"""
    both = trips["received_seq"].notna() & trips["delivered_seq"].notna() & remote(trips)
    held = trips[both & (trips["received_seq"] < trips["delivered_seq"])]
    came = held[["log", "node", "received_seq", "received_at"]].set_axis(["log", "node", "seq", "time"], axis=1)
    went = held[["log", "node", "delivered_seq", "delivered_at"]].set_axis(["log", "node", "seq", "time"], axis=1)
    steps = pd.concat([came.assign(step=1), went.assign(step=-1)]).sort_values(["log", "seq"], kind="stable")
    steps["held"] = steps.groupby("log", sort=False)["step"].cumsum()
    steps["waited"] = -steps["step"] * steps["time"]
    found = steps.groupby("node").agg(held_max=("held", "max"), held_mean=("waited", "sum"))
    found["held_mean"] = found["held_mean"] / span if span else 0.0
    return found.astype(float)


def outcomes(packets: pd.DataFrame, trips: pd.DataFrame) -> dict[str, int]:
    received, delivered = trips["received_at"].notna(), trips["delivered_at"].notna()
    receptions = of_kind(packets, Kind.RECEIVE)
    relaying = of_kind(packets, Kind.SEND) & ~packets["subscribed"] & (packets["node"] != packets["source"])
    return {
        "receptions": int(receptions.sum()),
        "false_positives": int((receptions & ~packets["subscribed"]).sum()),
        "relays": int(packets.loc[relaying, "node"].nunique()),
        "duplicates": int((trips["copies"] - 1).clip(lower=0).sum()),
        "deliveries_without_reception": int((delivered & ~received & remote(trips)).sum()),
        "undelivered": int((received & ~delivered & trips["subscribed"]).sum()),
    }
