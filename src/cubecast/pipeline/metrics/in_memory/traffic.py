"""What a run cost: packets, queues, load, ordering information; the files of the same themes say what each means."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cubecast.errors import TraceError
from cubecast.pipeline.metrics.traffic import LOADS
from cubecast.trace.schema import MOST_COUNTED, Kind

# One run's rows as a pandas frame, rows in the order of their logs, and the journeys of its publications.

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


# Costs.

_ROUNDING = 1e-6


def traffic(rows: pd.DataFrame) -> dict[str, int]:
    sent = of_kind(rows, Kind.SEND)
    useful = sent & carries_publication(rows)
    messages = rows["messages"]
    asked = {
        "published": Kind.PUBLISH,
        "deliveries": Kind.DELIVER,
        "gaps": Kind.GAP,
        "discards": Kind.DISCARD,
        "failed": Kind.FAILED,
        "subscribes": Kind.SUBSCRIBE,
        "subscribed": Kind.SUBSCRIBED,
        "unsubscribes": Kind.UNSUBSCRIBE,
    }
    return {
        "nodes": int(rows["node"].nunique()),
        **{name: int(of_kind(rows, kind).sum()) for name, kind in asked.items()},
        "packets": int(sent.sum()),
        "publication_packets": int(useful.sum()),
        "control_packets": int((sent & ~useful).sum()),
        "aggregated_packets": int((useful & (messages > 1)).sum()),
        "messages_sent": int(messages[useful].sum()),
        "bytes": int(known(rows["bytes"], 0)[sent].sum()),
        "events": len(rows),
    }


def packet_sizes(packets: pd.DataFrame) -> dict[str, pd.Series]:
    sent = packets[of_kind(packets, Kind.SEND)]
    return {
        "messages_per_packet": sent["messages"].astype(float),
        "bytes_per_packet": sent.loc[sent["bytes"] != ABSENT, "bytes"].astype(float),
    }


def ordering(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """Barriers as claimed; vectors from what each publisher had delivered before."""
    publishes = of_kind(rows, Kind.PUBLISH)
    foreign = of_kind(rows, Kind.DELIVER) & remote(rows) & (rows["source"] != ABSENT)
    some = rows.loc[publishes | foreign, ["log", "topic", "source", "source_incarnation", "seq"]].copy()
    publish = publishes[some.index]
    place = ["log", "topic"]
    previous = some.groupby([*place, "source", "source_incarnation"], sort=False)["seq"].shift()
    last_publish = some["seq"].where(publish).groupby([some[name] for name in place], sort=False).cummax()
    # cummax leaves the rows between two publications empty.
    last_publish = last_publish.groupby([some[name] for name in place], sort=False).ffill()
    new = ~publish & previous.isna()
    some["width"], some["changes"] = new, new | (~publish & (previous < last_publish))
    so_far = some.groupby(place, sort=False)[["width", "changes"]].cumsum().astype(float)[publish]
    before = so_far["changes"].groupby([some.loc[so_far.index, name] for name in place], sort=False).shift()
    return {
        "barrier_size": rows.loc[publishes, "deps"].astype(float),
        "vector_size": so_far["width"] + 1,
        "vector_changed": so_far["changes"] - before.fillna(0) + 1,
    }


def subscription_latencies(rows: pd.DataFrame) -> dict[str, pd.Series]:
    pairs = {
        "subscription_latency": (Kind.SUBSCRIBE, Kind.SUBSCRIBED),
        "unsubscription_latency": (Kind.UNSUBSCRIBE, Kind.UNSUBSCRIBED),
    }
    some = rows[of_kind(rows, *(kind for pair in pairs.values() for kind in pair))]
    before = some.groupby(["log", "topic"], sort=False)[["kind", "time"]].shift()
    took = some["time"] - before["time"]
    return {
        name: took[(some["kind"] == confirmed.value) & (before["kind"] == asked.value)]
        for name, (asked, confirmed) in pairs.items()
    }


def output_queue(rows: pd.DataFrame, transmission: float, queued_control: bool) -> pd.DataFrame:
    """Per packet through its sender's output queue. → log, node, queue_length, waiting_time, sojourn"""
    sends = of_kind(rows, Kind.SEND)
    queue = rows.loc[sends if queued_control else sends & carries_publication(rows), ["log", "node", "time"]].copy()
    position = queue.groupby("log", sort=False).cumcount() + 1
    slack = (queue["time"] - (position - 1) * transmission).groupby(queue["log"], sort=False).cummax()
    queue["sojourn"] = position * transmission + slack - queue["time"]
    queue["queue_length"] = np.ceil(queue["sojourn"] / transmission - _ROUNDING)
    queue["waiting_time"] = queue["sojourn"] - transmission
    return queue


def queue_per_node(queue: pd.DataFrame, span: float | None) -> pd.DataFrame:
    found = queue.groupby("node").agg(
        queue_mean=("sojourn", "sum"), queue_joined_mean=("queue_length", "mean"), queue_max=("queue_length", "max")
    )
    found["queue_mean"] = found["queue_mean"] / span if span else 0.0
    return found.astype(float)


def transits(rows: pd.DataFrame) -> pd.DataFrame:
    """Hand-over to first arrival of every packet. → node (the sender), sent_at, arrived_at (NaN: never)"""
    some = rows[of_kind(rows, Kind.SEND, Kind.RECEIVE) & (rows["packet"] != ABSENT)]
    sent = of_kind(some, Kind.SEND)
    each = pd.DataFrame(
        {
            "node": some["node"].where(sent, some["peer"]),
            "receiver": some["peer"].where(sent, some["node"]),
            "packet": some["packet"],
            "sent_at": some["time"].where(sent),
            "arrived_at": some["time"].where(~sent),
        }
    )
    found = each.groupby(["node", "receiver", "packet"], sort=False).min()
    return found[found["sent_at"].notna()].reset_index()


def in_flight_per_node(found: pd.DataFrame) -> pd.DataFrame:
    """→ by node: in_flight_max, lost"""
    arrived = found[found["arrived_at"].notna()]
    up = pd.DataFrame({"node": arrived["node"], "at": arrived["sent_at"], "step": 1})
    down = pd.DataFrame({"node": arrived["node"], "at": arrived["arrived_at"], "step": -1})
    steps = pd.concat([up, down]).sort_values(["node", "at", "step"], kind="stable")
    steps["in_flight"] = steps.groupby("node", sort=False)["step"].cumsum()
    most = steps.groupby("node")["in_flight"].max().rename("in_flight_max")
    lost = found["arrived_at"].isna().groupby(found["node"]).sum().rename("lost")
    return pd.concat([most, lost], axis=1).fillna(0).astype(float)


def load_per_node(rows: pd.DataFrame) -> pd.DataFrame:
    sent = of_kind(rows, Kind.SEND)
    counted = pd.DataFrame(
        {
            "node": rows["node"],
            "packets_sent": sent,
            "packets_received": of_kind(rows, Kind.RECEIVE),
            "bytes_sent": known(rows["bytes"], 0).where(sent, 0),
            "deliveries": of_kind(rows, Kind.DELIVER),
        }
    )
    return counted.groupby("node").sum().astype(float)


def balance(nodes: pd.DataFrame) -> dict[str, float | None]:
    """Gini coefficient and the busiest over the mean, for each kind of load."""
    shares: dict[str, float | None] = {}
    for load in LOADS:
        values = np.sort(nodes[load].to_numpy())
        total, n = float(values.sum()), len(values)
        ranks = 2 * np.arange(1, n + 1) - n - 1
        shares[f"{load}_gini"] = float((ranks * values).sum()) / (n * total) if total else None
        shares[f"{load}_max_over_mean"] = float(values[-1]) / (total / n) if total else None
    return shares
