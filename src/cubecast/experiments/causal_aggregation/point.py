"""One run of the chapter: one size, one seed, one reading; with and without aggregation on the same draws."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cubecast.errors import BadInput
from cubecast.protocol.hypercube.causal_aggregation import PacketOrder, Tree
from cubecast.sim.kernels.causal_broadcast import CausalKernel, CausalRun, Queue
from cubecast.sim.kernels.causal_tables import Floats

# Readings of the model where the text is silent, ambiguous or at odds with its own figures.
#
# The thesis gives: every node broadcasts one message "in random time given by a Poisson distribution", λ = 1000; per-
# hop propagation normal with mean 100 and deviation 25; one unit each for processing and transmission. Each reading
# below changes what is named and says why anybody would read it so. `docs/papers/causal-aggregation.md` has them all
# with their distance to all claims at once.

MEAN_PROPAGATION = 100.0
PRINTED_DEVIATION = 25.0


class Spread(Enum):
    """How the publication times lie."""

    UNIFORM = "uniform"  # in [0, scale]
    TRIANGULAR = "triangular"  # in [0, scale], the sum of two equal uniform times
    EXPONENTIAL = "exponential"  # the first event of a Poisson process per node with this mean interval
    PROCESS = "process"  # the events of one Poisson process, as many as nodes, `scale` long on average
    VARIATE = "variate"  # a Poisson-distributed number of units of time
    NORMAL = "normal"  # with this deviation


class Links(Enum):
    """What a propagation delay is drawn for."""

    PACKET = "packet"
    LINK = "link"  # once per run and pair of neighbours, the same in both directions
    DIRECTION = "direction"  # once per run and direction of a link
    BOTH = "both"  # for the link as above, and for each packet around that


@dataclass(frozen=True)
class Reading:
    name: str
    why: str
    spread: Spread = Spread.UNIFORM
    scale: float = 500.0
    deviation: float = PRINTED_DEVIATION
    links: Links = Links.PACKET
    order: PacketOrder = PacketOrder.ARRIVAL
    queue: Queue = Queue.NODE

    def publication_times(self, nodes: int, rng: Generator) -> Floats:
        match self.spread:
            case Spread.UNIFORM:
                times: Floats = rng.uniform(0, self.scale, nodes)
            case Spread.TRIANGULAR:
                times = rng.uniform(0, self.scale / 2, (2, nodes)).sum(axis=0)
            case Spread.EXPONENTIAL:
                times = rng.exponential(self.scale, nodes)
            case Spread.PROCESS:
                times = rng.permutation(rng.exponential(self.scale / nodes, nodes).cumsum())
            case Spread.VARIATE:
                times = rng.poisson(self.scale, nodes).astype(float)
            case Spread.NORMAL:
                times = rng.normal(0, self.scale, nodes)
        from_zero: Floats = times - times.min()
        return from_zero

    def delays(self, nodes: int, rng: Generator) -> Floats:
        """By message (one per node) and receiver; a message's sender at k is k with its lowest differing bit turned."""
        drawn = positive_normal(self.deviation, (nodes, nodes), rng)
        if self.links is Links.PACKET:
            return drawn
        if self.links is not Links.DIRECTION:
            drawn = np.triu(drawn) + np.triu(drawn, 1).T
        receiver, source = np.arange(nodes)[None, :], np.arange(nodes)[:, None]
        difference = receiver ^ source
        by_link: Floats = drawn[receiver ^ (difference & -difference), receiver]
        if self.links is Links.BOTH:
            by_link += rng.normal(0, self.deviation, by_link.shape)
            by_link = by_link.clip(1.0)
        return by_link


def positive_normal(deviation: float, shape: tuple[int, int], rng: Generator) -> Floats:
    """Normal, drawn again where it is not positive."""
    drawn: Floats = rng.normal(MEAN_PROPAGATION, deviation, shape)
    while (wrong := drawn <= 0).any():
        drawn[wrong] = rng.normal(MEAN_PROPAGATION, deviation, int(wrong.sum()))
    return drawn


PUBLISHED = Reading(
    "published",
    "the printed parameters: a Poisson process of mean interval 1000 per node, deviation 25",
    Spread.EXPONENTIAL,
    1000.0,
)
_WINDOW = Reading("window", "uniform in 500: share of messages without, and largest number of, dependencies (Fig. 4.3)")
_BELL = Reading(
    "bell",
    "triangular over 600: all of Fig. 4.3 and the sizes without aggregation (Table 4.3)",
    Spread.TRIANGULAR,
    600.0,
)
_ALL = (
    PUBLISHED,
    Reading("variate", "the printed sentence word for word: a Poisson variate of mean 1000", Spread.VARIATE, 1000.0),
    Reading("process", "one Poisson process for all nodes, N events in 1000 on average", Spread.PROCESS, 1000.0),
    _WINDOW,
    replace(_WINDOW, name="window-400", why="a shorter window", scale=400.0),
    replace(_WINDOW, name="window-400-35", why="a shorter window, deviation 25 · √2", scale=400.0, deviation=35.36),
    replace(_WINDOW, name="window-600", why="a longer window", scale=600.0),
    replace(_WINDOW, name="window-causal", why="causes first in a packet", order=PacketOrder.CAUSAL),
    replace(_WINDOW, name="window-whole", why="a packet is taken in whole before forwarding", order=PacketOrder.WHOLE),
    replace(_WINDOW, name="window-link-queue", why="an output queue per link", queue=Queue.LINK),
    replace(_WINDOW, name="window-no-queue", why="nobody waits for transmission", queue=Queue.NONE),
    replace(_WINDOW, name="window-35", why="deviation 25 drawn twice per hop (25 · √2)", deviation=35.36),
    replace(_WINDOW, name="window-50", why="deviation 50", deviation=50.0),
    replace(_WINDOW, name="window-links", why="§4.5.6 varies the latency per use for the single tree only: elsewhere"
            " it belongs to the link", links=Links.LINK),
    replace(_WINDOW, name="window-links-50", why="per link, deviation 50", links=Links.LINK, deviation=50.0),
    replace(_WINDOW, name="normal", why="times normal with deviation 110", spread=Spread.NORMAL, scale=110.0),
    _BELL,
    replace(_BELL, name="bell-causal", why="causes first in a packet", order=PacketOrder.CAUSAL),
    replace(_BELL, name="bell-30", why="deviation 30", deviation=30.0),
    replace(_BELL, name="bell-35", why="triangular over 600; deviation 25 · √2, as if drawn twice", deviation=35.36),
    replace(_BELL, name="bell-40", why="deviation 40", deviation=40.0),
    replace(
        _BELL,
        name="bell-both",
        why="each link has its latency (deviation 25) and each use of it varies (deviation 25)",
        links=Links.BOTH,
    ),
    replace(_BELL, name="bell-50", why="deviation 50", deviation=50.0),
    replace(_BELL, name="bell-links", why="latency per link", links=Links.LINK),
    replace(_BELL, name="bell-links-50", why="latency per link, deviation 50", links=Links.LINK, deviation=50.0),
    replace(_BELL, name="bell-links-60", why="latency per link, deviation 60", links=Links.LINK, deviation=60.0),
    replace(_BELL, name="bell-directions-50", why="latency per direction, deviation 50", links=Links.DIRECTION,
            deviation=50.0),
)  # fmt: skip
READINGS: dict[str, Reading] = {reading.name: reading for reading in _ALL}
CHOSEN = READINGS["bell-35"]
"""The one with the smallest total distance to the claims; `gap` prints the comparison it was chosen by."""


def find_reading(name: Any) -> Reading:
    if name not in READINGS:
        raise BadInput(f"unknown reading {name!r}; there are {', '.join(READINGS)}")
    return READINGS[name]


# One run.

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
