"""What a run cost: packets, queues, load, ordering information; the files of the same themes say what each means."""

import numpy as np
import pandas as pd

from cubecast.pipeline.metrics.in_memory.events import ABSENT, carries_publication, known, of_kind, remote
from cubecast.pipeline.metrics.traffic import LOADS
from cubecast.trace.schema import Kind

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
