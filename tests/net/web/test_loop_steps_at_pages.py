"""Nor do requests over HTTP, listings of very many topics, or a new policy for clients with very many subscriptions."""

import pytest
from aiohttp import ClientSession

from cubecast.addresses import Address
from cubecast.net.daemon import Reloading
from cubecast.net.gateway.messages import Ended, StatusReply, StatusRequest
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.resolve import Reloader, Resolved
from net.node.test_loop_steps import GENEROUS, MANY, TOPICS, WORST, say, subscribed, told, visitor
from support.cluster import cluster
from support.loop_steps import steps
from support.running import run, until

VERY_MANY = 20_000
"""Topics, all of them published on, subscribed to and in the log."""
PAGES = (
    *("/", "/cubecast.min.js", "/healthz", "/readyz", "/metrics", "/status.json", "/trace"),
    *("/api/cube.json", "/api/cube.json?topic=t.5", "/api/topics.json", "/api/rates.json", "/api/held.json"),
    "/api/faults.json",
)
SOMEBODY = (
    '[principals.p{}]\ntokens = ["sha256:{:064x}"]\npublish = ["orders.*", "_inbox.*"]\nsubscribe = ["orders.>"]\n'
)


async def grown(node):
    """With all those topics at rest."""
    heard = node.subscribe("t.>")
    for number in range(VERY_MANY):
        await node.publish(f"t.{number}", b"x")
    for _ in range(VERY_MANY):
        await heard.next(60)
    await node.publish("t.0", b"x", wait="durable")
    return heard


@pytest.mark.slow
def test_pages_of_a_node_with_very_many_topics(tmp_path):
    async def main():
        http = Address("127.0.0.1", 0)
        async with cluster(1, http=http, data=tmp_path, log=(">",), limits=GENEROUS) as (node,), ClientSession() as web:
            heard = await grown(node)
            assert (await node.status())["topics_in_all"] >= VERY_MANY
            for page in (*PAGES, *PAGES):
                with steps() as found:
                    async with web.get(f"http://{node.http_address}{page}") as answer:
                        assert answer.status in (200, 503), page
                        await answer.read()
                assert found.count and found.worst < WORST, (page, found)
            caller = await visitor(node)
            with steps() as found:
                say(caller, [StatusRequest(number) for number in range(8)])
                await told(caller, StatusReply, 8)
            assert found.worst < WORST, found
            caller.close()
            assert not heard.closed

    run(main())


def test_switching_a_trace_on(tmp_path):
    async def main():
        async with cluster(1, http=Address("127.0.0.1", 0), data=tmp_path) as (node,), ClientSession() as web:
            with steps() as found:
                async with web.post(f"http://{node.http_address}/trace?on=true&run=one") as answer:
                    assert answer.status == 200, await answer.text()
            assert found.worst < WORST, found

    run(main())


def test_a_new_policy(tmp_path):
    policy = tmp_path / "policy.toml"

    def write(granted: str) -> None:
        known = "".join(SOMEBODY.format(number, number) for number in range(1_000))
        policy.write_text(f'[anonymous]\nsubscribe = ["{granted}"]\n{known}')

    async def main():
        write(">")
        async with cluster(1, policy=policy, limits=GENEROUS, insecure=True) as (node,):
            callers = [await visitor(node) for _ in range(2)]
            for caller in callers:
                await subscribed(caller, TOPICS["topics"])
            write("nothing")
            live = node._live
            reloading = Reloading(Reloader(NodeConfig, live.config, lambda: Resolved(live.config, {}), live.reloads))
            with steps() as found:
                reloading.ask()
                reloading.ask()
                for caller in callers:
                    await told(caller, Ended, MANY)
                await until(lambda: live.port.describe()["subscriptions"] == 0)
            assert found.worst < WORST, found
            for caller in callers:
                caller.close()

    run(main())
