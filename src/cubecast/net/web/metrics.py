"""`/metrics` for Prometheus: nothing is counted in its library, everything is read when it asks."""

from collections.abc import Iterator
from itertools import accumulate

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
from cubecast.net.observe.histogram import BOUNDS, Histogram
from cubecast.net.web.catalogue import CATALOGUE, Metric
from cubecast.net.web.observer import Observer
from cubecast.net.web.watched import WatchedNode

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
