"""/metrics: what it says is true, complete, documented, and what the dashboard asks for exists."""

import json
import re

from prometheus_client.parser import text_string_to_metric_families

from cubecast.net.observe.meter import BOUNDS
from cubecast.net.web.metrics import CATALOGUE, MOST_LABELLED
from support.asking import HTTP, ask
from support.cluster import cluster
from support.running import run, until
from support.sources import ROOT

NAME = re.compile(r"\b((?:cubecast|process)_[a-z_]+)\b")
SUFFIXES = ("_bucket", "_sum", "_count")


async def scraped(node) -> dict[tuple[str, str], float]:
    """(name, value of the label or nothing) → value"""
    status, text = await ask(node, "/metrics")
    assert status == 200
    return {
        (
            sample.name,
            "".join(sample.labels.values()) if "le" not in sample.labels else sample.labels["le"],
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_waits_for_the_disk_is_told(tmp_path):
    async def main():
        async with cluster(1, http=HTTP, data=tmp_path, log=(">",)) as (node,), node.subscribe("t") as heard:
            await heard.ready()
            await node.publish("t", b"12345", wait="durable")
            assert (await scraped(node))["cubecast_log_messages", ""] == 1
            node._live.observer.log_sizes = lambda: {"pending": 77}
            found = await scraped(node)
            assert found["cubecast_log_pending_bytes", ""] == 77 and found["cubecast_log_bytes", ""] == 0
            assert "pending" in node._live.port.recorder.describe()

    run(main())


def test_what_happened_is_what_it_says():
    async def main():
        async with cluster(3, http=HTTP) as (one, two, three), two.subscribe("t"), three.subscribe("t") as heard:
            await heard.ready()
            for _ in range(20):
                await one.publish("t", b"12345", wait="stable")
            await until(lambda: one._live.observer.latency.histogram.count)
            publisher, subscriber = await scraped(one), await scraped(three)
            assert publisher["cubecast_published_total", ""] == 20
            assert subscriber["cubecast_deliveries_total", ""] == 20
            assert subscriber["cubecast_holding_seconds_count", ""] == 20
            assert subscriber["cubecast_held_messages", ""] == 0
            assert publisher["cubecast_stability_seconds_count", ""] == 20
            assert publisher["cubecast_delivery_latency_seconds_count", ""] >= 1
            assert publisher["cubecast_sent_bytes_total", ""] >= 40 * len(b"12345")
            assert publisher["cubecast_received_packets_total", ""] > 0
            assert publisher["cubecast_publication_sampled_total", ""] >= 1
            assert publisher["cubecast_publication_sampled_bytes_total", "payload"] >= 5
            assert (publisher["cubecast_members", "alive"], publisher["cubecast_members", "self"]) == (2, 1)
            assert publisher["cubecast_links", ""] == 2
            assert publisher["process_resident_memory_bytes", ""] > 1e6

    run(main())


def test_every_metric_is_there_and_counters_are_counters():
    async def main():
        async with cluster(1, http=HTTP) as (node,):
            status, text = await ask(node, "/metrics")
            families = {family.name: family.type for family in text_string_to_metric_families(text)}
            assert status == 200
            for metric in CATALOGUE:
                kind = "histogram" if metric.histogram else "counter" if metric.is_counter else "gauge"
                assert families[metric.name.removesuffix("_total")] == kind, metric.name
            assert text.count("cubecast_holding_seconds_bucket") == len(BOUNDS) + 1

    run(main())


def test_lines_do_not_grow_with_topics():
    async def main():
        async with cluster(1, http=HTTP) as (node,):
            held = node._live.observer.meter.held
            for number in range(100):
                held[f"topic {number}", (1, 0, 1)] = (0.0, number + 1, 10)
            said = await scraped(node)
            lags = {topic: value for (name, topic), value in said.items() if name == "cubecast_topic_lag_messages"}
            assert len(lags) == MOST_LABELLED and min(lags.values()) == 101 - MOST_LABELLED
            assert said["cubecast_lag_messages", ""] == 5050

    run(main())


def _known() -> set[str]:
    names = {metric.name for metric in CATALOGUE} | {"cubecast_info"}
    return names | {metric.name + suffix for metric in CATALOGUE if metric.histogram for suffix in SUFFIXES}


def test_the_document_lists_every_metric_and_no_other():
    named = set(NAME.findall((ROOT / "docs" / "live-metrics.md").read_text()))
    assert {metric.name for metric in CATALOGUE} <= named
    assert {name for name in named if name.startswith("cubecast_")} <= _known()


def test_the_dashboard_asks_only_for_what_there_is():
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "cubecast.json").read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    asked = {name for panel in panels for target in panel["targets"] for name in NAME.findall(target["expr"])}
    assert len(panels) >= 15 and len(asked) >= 25
    assert {name for name in asked if name.startswith("cubecast_")} <= _known()
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in panels:
        assert all(target["expr"].count("(") == target["expr"].count(")") for target in panel["targets"])


def test_the_durable_log_is_measured(tmp_path):
    async def main():
        async with cluster(1, http=HTTP, data=tmp_path, log=("kept",)) as (node,), node.subscribe("kept") as heard:
            await heard.ready()
            await node.publish("kept", b"12345", wait="stable")
            said = await scraped(node)
            assert said["cubecast_log_messages", ""] == 1
            assert (said["cubecast_log_trouble", ""], said["cubecast_log_damaged_ranges", ""]) == (0, 0)

    run(main())
