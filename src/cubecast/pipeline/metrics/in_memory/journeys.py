"""Where each publication went and how long it took; `pipeline/metrics/journeys.py` says what the rows mean."""

import numpy as np
import pandas as pd

from cubecast.pipeline.metrics.in_memory.events import ABSENT, MESSAGE, carries_publication, of_kind, remote
from cubecast.trace.schema import Kind

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
