"""Every metric of a few runs, run by run, in this process."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from cubecast.pipeline.metrics import tables
from cubecast.pipeline.metrics.in_memory import traffic
from cubecast.pipeline.metrics.in_memory.traffic import (
    buffers,
    journeys,
    latencies,
    outcomes,
    publication_packets,
    read_rows,
)
from cubecast.pipeline.metrics.results import NORMAL_QUANTILE, PERCENTILES, Metrics, metrics_of
from cubecast.pipeline.metrics.source import Header
from cubecast.pipeline.staging import Run


def measure_in_memory(
    runs: Sequence[Run],
    headers: Sequence[Header],
    refused: Sequence[str] = (),
    tell: Callable[[str], None] = lambda text: None,
) -> Metrics:
    """What `measure` finds with Spark, to the last digit but those of sums in another order."""
    began = time.perf_counter()
    totals: dict[str, dict[str, Any]] = {}
    spread: dict[str, dict[str, np.ndarray]] = {}
    per_node: list[pd.DataFrame] = []
    for number, (run, header) in enumerate(zip(runs, headers, strict=True), 1):
        tell(f"measuring run {number} of {len(runs)}")
        totals[header.run], nodes, spread[header.run] = measure_run(*read_rows(run.files), header)
        per_node.append(nodes.reset_index().assign(run=header.run)[["run", "node", *tables.PER_NODE]])
    distributions = [
        {"run": run, "metric": metric, **describe(values)}
        for run, found in spread.items()
        for metric, values in found.items()
        if len(values)
    ]
    nodes_of_all = pa.Table.from_pandas(pd.concat(per_node, ignore_index=True), preserve_index=False)
    frames = {"nodes": nodes_of_all, "histograms": _histograms(spread), "quantiles": _quantiles(spread)}
    return metrics_of(headers, totals, distributions, frames, time.perf_counter() - began, refused)


def measure_run(
    rows: pd.DataFrame, contents: pd.DataFrame, header: Header
) -> tuple[dict[str, Any], pd.DataFrame, dict[str, np.ndarray]]:
    """Totals, numbers per node, and the values of every distribution."""
    packets = publication_packets(rows)
    trips = journeys(rows, packets, contents)
    began, ended = float(rows["time"].min()), float(rows["time"].max())
    span = ended - began
    transits = traffic.transits(rows)
    arrived = transits["arrived_at"].notna()
    values = latencies(trips) | traffic.ordering(rows) | traffic.packet_sizes(packets)
    values |= {"transit_time": (transits["arrived_at"] - transits["sent_at"])[arrived]}
    values |= traffic.subscription_latencies(rows)
    parts = [traffic.load_per_node(rows), traffic.in_flight_per_node(transits), buffers(trips, span)]
    if header.transmission_time:
        queue = traffic.output_queue(rows, header.transmission_time, header.queued_control)
        values |= {"queue_length": queue["queue_length"], "queue_waiting_time": queue["waiting_time"]}
        parts.append(traffic.queue_per_node(queue, span))
    nodes = pd.concat(parts, axis=1).reindex(parts[0].index).fillna(0.0)
    nodes = nodes.reindex(columns=list(tables.PER_NODE))  # without an output queue its columns are empty
    values |= {f"node_{name}": nodes[name].dropna() for name in tables.PER_NODE}
    total: dict[str, Any] = {"run": header.run, "began_at": began, "ended_at": ended}
    total |= traffic.traffic(rows) | outcomes(packets, trips) | traffic.balance(nodes)
    total["lost_packets"] = int(nodes["lost"].sum())
    total |= tables.ratios(total)
    return total, nodes, {name: np.sort(found.to_numpy(float)) for name, found in values.items()}


def describe(values: np.ndarray) -> dict[str, Any]:
    """Of sorted values."""
    count = len(values)
    std = float(values.std(ddof=1)) if count > 1 else None
    return {
        "count": count,
        "mean": float(values.mean()),
        "std": std,
        "ci99": None if std is None else NORMAL_QUANTILE * std / math.sqrt(count),
        "min": float(values[0]),
        **{name: at_rank(values, rank) for name, rank in PERCENTILES},
        "max": float(values[-1]),
    }


def at_rank(values: np.ndarray, rank: float) -> float:
    """The observed value below or at which a share `rank` lies."""
    return float(values[max(math.ceil(rank * len(values)) - 1, 0)])


def _histograms(spread: Mapping[str, Mapping[str, np.ndarray]]) -> pa.Table:
    rows = []
    for run, found in spread.items():
        for metric in tables.COUNTED:
            values, counts = np.unique(found.get(metric, np.zeros(0)), return_counts=True)
            rows += [
                {"run": run, "metric": metric, "value": value, "count": count, "share": count / counts.sum()}
                for value, count in zip(values.tolist(), counts.tolist(), strict=True)
            ]
    names = {"run": pa.string(), "metric": pa.string(), "value": pa.float64(), "count": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema([*names.items(), ("share", pa.float64())]))


def _quantiles(spread: Mapping[str, Mapping[str, np.ndarray]]) -> pa.Table:
    rows = [
        {"run": run, "metric": metric, "rank": step / 100, "value": at_rank(found[metric], step / 100)}
        for run, found in spread.items()
        for metric in tables.TIMED
        if len(found[metric])
        for step in range(101)
    ]
    names = {"run": pa.string(), "metric": pa.string(), "rank": pa.float64(), "value": pa.float64()}
    return pa.Table.from_pylist(rows, pa.schema(list(names.items())))
