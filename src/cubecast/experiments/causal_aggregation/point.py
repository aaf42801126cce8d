"""One run of the chapter: one size, one seed, one reading; with and without aggregation on the same draws."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cubecast.experiments.causal_aggregation.readings import PRINTED_DEVIATION, Reading, find_reading, positive_normal
from cubecast.protocol.hypercube.causal_aggregation import Tree
from cubecast.sim.kernels.causal_broadcast import CausalKernel, CausalRun
from cubecast.sim.kernels.causal_tables import Floats

SIZE_EDGES = (100, 200, 300, 400)
MOST_MESSAGES_COUNTED = 40
SMALL_PAYLOAD = 5
LARGEST = 1024


def run_point(point: Mapping[str, Any]) -> dict[str, Any]:
    """`nodes`, `seed` and `reading` in, figures out; plain data both ways, so that any scheduler can carry it."""
    nodes, reading = int(point["nodes"]), find_reading(point["reading"])
    rng = np.random.default_rng([int(point["seed"]), nodes])
    times, delays = reading.publication_times(nodes, rng), reading.delays(nodes, rng)
    without = _kernel(reading, nodes, aggregate=False).simulate(times, delays)
    with_ = _kernel(reading, nodes, aggregate=True).simulate(times, delays)
    assert without.complete() and with_.complete()
    return {
        "nodes": nodes,
        "none": _figures(without),
        "aggr": _figures(with_),
        **_pairs(without, with_),
        **_dependencies(with_),
        **(_small_payload(reading, nodes, times, delays) if nodes == LARGEST else {}),
        **_single_tree(reading, nodes, times, rng),
    }


def _kernel(reading: Reading, nodes: int, *, aggregate: bool, **options: Any) -> CausalKernel:
    return CausalKernel(nodes, aggregate, order=reading.order, queue=reading.queue, **options)


def _figures(run: CausalRun) -> dict[str, Any]:
    reception, delivery = np.nanmean(run.reception_latency), np.nanmean(run.delivery_latency)
    sizes, counts, buffered = run.bytes_per_packet, run.messages_per_packet, run.most_pending
    return {
        "packets": run.packets,
        "bytes": int(sizes.sum()),
        "messages_per_packet": np.bincount(counts, minlength=MOST_MESSAGES_COUNTED).tolist(),
        "most_messages": int(counts.max()),
        "most_aggregated": np.bincount(run.most_aggregated(), minlength=MOST_MESSAGES_COUNTED).tolist(),
        "packets_by_size": _by_size(sizes),
        "packets_over_1400": int((sizes > 1400).sum()),
        "reception": float(reception),
        "longest_reception": float(np.nanmax(run.reception_latency)),
        "delivery": float(delivery),
        "holding": float(delivery - reception),
        "held": int((run.delivery_latency > run.reception_latency).sum()),
        "queue_wait": run.mean_wait,
        "nodes_buffering_at_most_50": int((buffered <= 50).sum()),
        "nodes_buffering_over_250": int((buffered > 250).sum()),
        "median_buffer": float(np.median(buffered)),
    }


def _by_size(sizes: NDArray[np.int32]) -> list[int]:
    """Packets of at most 100 bytes, up to 200, … and above 400.

    The table's first row is "< 100" and its second "(100, 200]", which leaves exactly 100 out; it can only belong to
    the first, because the second is open there.
    """
    places = np.searchsorted(np.array(SIZE_EDGES), sizes, side="left")
    return np.bincount(places, minlength=len(SIZE_EDGES) + 1).tolist()  # type: ignore[no-any-return]


def _pairs(without: CausalRun, with_: CausalRun) -> dict[str, float]:
    """Latencies of the messages that travelled in packets of exactly two, with aggregation and without (Fig. 4.5)."""
    receivers, messages = with_.carried_in_packets_of(2)
    if not len(receivers):
        return {"pairs": 0}
    figures: dict[str, float] = {"pairs": len(receivers) // 2}
    for name, run in (("none", without), ("aggr", with_)):
        figures[f"pair_reception_{name}"] = float(run.reception_latency[receivers, messages].mean())
        figures[f"pair_delivery_{name}"] = float(run.delivery_latency[receivers, messages].mean())
    return figures


def _dependencies(run: CausalRun) -> dict[str, Any]:
    dependencies = run.entries - 1
    direct = run.direct_dependencies()
    return {
        "dependencies": np.bincount(dependencies).tolist(),
        "entries": float(run.entries.mean()),
        "barrier": float(direct.mean()),
        "most_indirect": int((dependencies - direct).max()),
    }


def _small_payload(reading: Reading, nodes: int, times: Floats, delays: Floats) -> dict[str, Any]:
    run = _kernel(reading, nodes, aggregate=True, payload_bytes=SMALL_PAYLOAD).simulate(times, delays)
    most = run.most_aggregated()
    return {"most_aggregated_small": np.bincount(most, minlength=MOST_MESSAGES_COUNTED).tolist()}


def _single_tree(reading: Reading, nodes: int, times: Floats, rng: Generator) -> dict[str, Any]:
    """Everything through the tree of node 0, whose links' latencies vary at each use, as printed (§4.5.6)."""
    delays = positive_normal(PRINTED_DEVIATION, (nodes, nodes), rng)
    figures = {}
    for name, aggregate in (("single_none", False), ("single_aggr", True)):
        run = _kernel(reading, nodes, aggregate=aggregate, tree=Tree.SINGLE).simulate(times, delays)
        assert run.complete()
        figures[name] = _figures(run)
    return figures
