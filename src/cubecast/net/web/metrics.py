"""Every metric of a node: its name, what it means, how it is read when it is asked for; `/metrics` for Prometheus."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate
from time import monotonic

from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import (
    Metric as Family,
)
from prometheus_client.registry import Collector

from cubecast import __version__
from cubecast.net.links.loop import IS_COMPILED
from cubecast.net.observe.meter import BOUNDS, PARTS, Histogram
from cubecast.net.web.observer import Observer, WatchedNode

MOST_LABELLED = 20
"""Topics and peers that get a line of their own, those with the largest values; the sum is a metric beside."""

Read = Callable[[Observer], float]
ReadMany = Callable[[Observer], Mapping[str, float]]


@dataclass(frozen=True)
class Metric:
    name: str
    """As it is asked for; those of counters end in _total."""
    text: str
    read: Read | None = None
    label: str = ""
    read_many: ReadMany | None = None
    """Per value of the label."""
    histogram: Callable[[Observer], Histogram] | None = None

    @property
    def is_counter(self) -> bool:
        return self.name.endswith("_total")


def _largest(values: Mapping[str, float]) -> dict[str, float]:
    return dict(nlargest(MOST_LABELLED, values.items(), key=lambda one: (one[1], one[0])))


def _lag(seen: Observer) -> dict[str, float]:
    """Messages that arrived and are not delivered, per topic."""
    lag: dict[str, float] = {}
    for (topic, _), (_, messages, _) in seen.meter.held.items():
        lag[topic] = lag.get(topic, 0) + messages
    return lag


def _oldest(seen: Observer) -> float:
    now = monotonic()
    return max((now - since for since, _, _ in seen.meter.held.values()), default=0.0)


def _slow(seen: Observer) -> dict[str, float]:
    """Publications that wait for subscribers that read slowly, per topic."""
    return {} if seen.driver is None else {topic: float(count) for topic, count in seen.driver.deferred.counts.items()}


def _queues(seen: Observer) -> dict[str, float]:
    return {str(node): float(size) for node, size in seen.peers.queued.items()}


def _dropped(seen: Observer) -> dict[str, float]:
    refused = 0 if seen.driver is None else seen.driver.deferred.refused
    return {"unreachable": seen.peers.dropped, "slow-subscriber": refused, "not-for-us": seen.meter.discarded}


def _log(part: str) -> Read:
    """Numbers as they are, other things by whether they are there; 0 without a log."""

    def read(seen: Observer) -> float:
        found = seen.log_seen.get(part)
        return found if isinstance(found, int | float) else float(found is not None)

    return read


def _happened(kind: str) -> Read:
    return lambda seen: seen.happenings.counts[kind]


MESSAGES = (
    Metric("cubecast_deliveries_total", "Messages delivered here.", lambda seen: sum(seen.meter.delivered.values())),
    Metric("cubecast_published_total", "Messages published here.", lambda seen: sum(seen.meter.published.values())),
    Metric(
        "cubecast_published_batches_total", "Publications (batches) made here.", lambda o: o.meter.batches_published
    ),
    Metric(
        "cubecast_delivery_latency_seconds",
        "From publication here to delivery at another member; one publication a second is followed.",
        histogram=lambda seen: seen.latency.histogram,
    ),
    Metric(
        "cubecast_delivery_latency_error_seconds",
        "By how much each measured delivery latency may be wrong, because clocks differ.",
        histogram=lambda seen: seen.latency.uncertainty,
    ),
    Metric(
        "cubecast_delivery_latency_given_up_total",
        "Deliveries that were followed and never learned of.",
        lambda seen: seen.latency.given_up,
    ),
    Metric(
        "cubecast_holding_seconds",
        "From arrival here to delivery here, per message.",
        histogram=lambda seen: seen.meter.holding,
    ),
    Metric(
        "cubecast_stability_seconds",
        "From publication here until everybody it was for had acknowledged it, per message.",
        histogram=lambda seen: seen.meter.stability,
    ),
    Metric("cubecast_held_messages", "Messages that wait for what they depend on.", lambda o: o.meter.held_messages),
    Metric("cubecast_held_bytes", "Their bytes.", lambda seen: seen.meter.held_bytes),
    Metric("cubecast_held_oldest_seconds", "How long the oldest of them has been waiting.", _oldest),
    Metric("cubecast_lag_messages", "Messages that arrived and are not delivered.", lambda o: sum(_lag(o).values())),
    Metric(
        "cubecast_topic_lag_messages",
        "The same per topic, the largest ones.",
        label="topic",
        read_many=lambda seen: _largest(_lag(seen)),
    ),
    Metric("cubecast_unstable_messages", "Own messages not yet everywhere.", lambda seen: seen.meter.unstable),
)

TRAFFIC = (
    Metric("cubecast_sent_bytes_total", "Bytes sent to peers.", lambda seen: seen.peers.traffic.bytes_out),
    Metric("cubecast_received_bytes_total", "Bytes received from peers.", lambda seen: seen.peers.traffic.bytes_in),
    Metric("cubecast_sent_packets_total", "Packets sent to peers.", lambda seen: seen.peers.traffic.frames_out),
    Metric("cubecast_received_packets_total", "Packets received from peers.", lambda o: o.peers.traffic.frames_in),
    Metric("cubecast_client_sent_bytes_total", "Bytes sent to clients.", lambda o: o.clients.traffic.bytes_out),
    Metric(
        "cubecast_client_received_bytes_total", "Bytes received from clients.", lambda o: o.clients.traffic.bytes_in
    ),
    Metric(
        "cubecast_publication_sampled_bytes_total",
        "Bytes of some publications of this node, by part; divide by cubecast_publication_sampled_total.",
        label="part",
        read_many=lambda seen: {part: seen.meter.metadata.parts[part] for part in PARTS},
    ),
    Metric(
        "cubecast_publication_sampled_total",
        "Publications of this node whose parts were measured.",
        lambda seen: seen.meter.metadata.looked_at,
    ),
    Metric("cubecast_duplicates_total", "Publications that came again.", lambda seen: seen.meter.duplicates),
    Metric("cubecast_repeats_total", "Publications sent again for want of an answer.", lambda o: o.meter.repeated),
    Metric("cubecast_dropped_total", "What was not taken, by reason.", label="reason", read_many=_dropped),
    Metric("cubecast_gaps_total", "Times a subscriber was told that something is missing.", lambda o: o.meter.gaps),
    Metric("cubecast_lost_messages_total", "Messages named in gaps.", lambda seen: seen.meter.missing),
    Metric("cubecast_peer_queues_bytes", "Bytes that wait for peers to read.", lambda o: sum(o.peers.queued.values())),
    Metric(
        "cubecast_peer_queue_bytes",
        "The same per peer, the largest ones.",
        label="peer",
        read_many=lambda seen: _largest(_queues(seen)),
    ),
    Metric("cubecast_client_queues_bytes", "Bytes that wait for clients to read.", lambda o: sum(o.clients.queued)),
    Metric(
        "cubecast_held_back",
        "Publications that wait for subscribers that read slowly.",
        lambda o: sum(_slow(o).values()),
    ),
    Metric(
        "cubecast_topic_held_back",
        "The same per topic, the largest ones.",
        label="topic",
        read_many=lambda seen: _largest(_slow(seen)),
    ),
    Metric(
        "cubecast_deferred_bytes",
        "Their bytes.",
        lambda seen: 0 if seen.driver is None else seen.driver.deferred.bytes,
    ),
)

NODE = (
    Metric("cubecast_links", "Open links to peers.", lambda seen: len(seen.peers.queued)),
    Metric("cubecast_reconnects_total", "Links that were lost and came back.", lambda seen: seen.reconnects),
    Metric("cubecast_disconnects_total", "Links that were lost.", _happened("disconnected")),
    Metric(
        "cubecast_members", "Members by state, as in /api/cube.json.", label="state", read_many=lambda o: o.states()
    ),
    Metric("cubecast_suspicions_total", "Peers held faulty that had not said goodbye.", _happened("suspected")),
    Metric("cubecast_incarnation", "This node's incarnation.", lambda seen: seen.incarnation),
    Metric("cubecast_reincarnations_total", "Times others held this node faulty.", lambda o: o.meter.incarnations),
    Metric("cubecast_topics", "Topics this node delivered or published on.", lambda seen: seen.meter.topics),
    Metric("cubecast_clients", "Connected thin clients.", lambda seen: len(seen.clients)),
    Metric(
        "cubecast_clients_cut_total", "Clients cut off: they did not read, or were silent.", _happened("client-cut")
    ),
    Metric("cubecast_refused_callers_total", "Callers that were sent away.", _happened("refused")),
    Metric(
        "cubecast_refused_frames_total", "Frames nobody may send; the connection was cut.", _happened("refused-frame")
    ),
    Metric(
        "cubecast_loop_lag_seconds",
        "How late the event loop was, looked at four times a second.",
        histogram=lambda seen: seen.loop_lag,
    ),
    Metric("cubecast_loop_lag_max_seconds", "How late it was at most in the last second.", lambda seen: seen.lateness),
    Metric("cubecast_tracing", "1 while this node writes a journal.", lambda seen: seen.is_tracing),
    Metric("cubecast_log_bytes", "Bytes of the durable log on disk.", _log("bytes")),
    Metric("cubecast_log_messages", "Messages in the durable log.", _log("messages")),
    Metric("cubecast_log_pending_bytes", "Bytes that wait to be written to the durable log.", _log("pending")),
    Metric("cubecast_log_damaged_ranges", "Ranges of the durable log that cannot be read.", _log("damaged_ranges")),
    Metric("cubecast_log_trouble", "1 while the disk refuses to be written.", _log("trouble")),
)

CATALOGUE: tuple[Metric, ...] = (*MESSAGES, *TRAFFIC, *NODE)


# `/metrics` for Prometheus: nothing is counted in its library, everything is read when it asks.

EDGES = (*(f"{bound:g}" for bound in BOUNDS), "+Inf")


class NodeCollector(Collector):
    """Reads one node."""

    def __init__(self, node: WatchedNode) -> None:
        self._node = node

    def collect(self) -> Iterator[Family]:
        observer = self._node.observer
        if observer is None:
            return
        observer.log_seen = observer.log_sizes()
        for metric in CATALOGUE:
            yield _family(metric, observer)
        build = "compiled" if IS_COMPILED else "pure"
        about = {"version": __version__, "build": build, "cluster": observer.config.cluster}
        me = observer.directory.me
        yield InfoMetricFamily("cubecast", "This node.", about | {"node": "" if me is None else str(me.node)})


def _family(metric: Metric, observer: Observer) -> Family:
    if metric.histogram is not None:
        return _histogram(metric, metric.histogram(observer))
    labels = [metric.label] if metric.label else []
    family = (
        CounterMetricFamily(metric.name.removesuffix("_total"), metric.text, labels=labels)
        if metric.is_counter
        else GaugeMetricFamily(metric.name, metric.text, labels=labels)
    )
    if metric.read_many is not None:
        for label, value in metric.read_many(observer).items():
            family.add_metric([label], value)
    elif metric.read is not None:
        family.add_metric([], metric.read(observer))
    return family


def _histogram(metric: Metric, histogram: Histogram) -> HistogramMetricFamily:
    family = HistogramMetricFamily(metric.name, metric.text)
    counts = list(accumulate(histogram.counts))
    family.add_metric([], list(zip(EDGES, map(float, counts), strict=True)), histogram.sum)
    return family


def routes(node: WatchedNode) -> list[web.RouteDef]:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(node))
    ProcessCollector(registry=registry)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return [web.get("/metrics", metrics)]
