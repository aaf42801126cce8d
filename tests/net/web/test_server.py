"""The server itself: there when asked for, gone with its node, and closed to pages of other origins."""

import asyncio
import json
from contextlib import suppress

import aiohttp
import pytest

from cubecast.addresses import Address
from cubecast.api.node import Node
from cubecast.errors import BadInput
from cubecast.net.live_node import LiveNode
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.security import Limits, is_loopback
from support.asking import HTTP, ask, ask_at, ask_json
from support.cluster import FAST, cluster
from support.ports import free_addresses
from support.running import run, until


def test_a_node_serves_nothing_unless_asked_to():
    async def main():
        async with Node(**FAST) as node:
            assert node._live.web is None

    run(main())


def test_health_readiness_and_status():
    async def main():
        async with cluster(2, http=HTTP) as (one, two):
            assert await ask_json(one, "/healthz") == {"alive": True}
            # A busy machine may make a node late, which it then says for a second.
            while (await ask(two, "/readyz"))[0] != 200:
                await asyncio.sleep(0)
            assert await ask_json(two, "/readyz") == {"ready": True, "reasons": []}
            status = await ask_json(two, "/status.json")
            assert status["node"] == two.id and len(status["members"]) == 2
            assert (await ask(one, "/nothing"))[0] == 404

    run(main())


def test_a_node_that_has_no_place_yet_says_so():
    async def main():
        (nobody,) = free_addresses(1)
        node = LiveNode(NodeConfig(join=(Address.parse(nobody),), http=HTTP))
        starting = asyncio.ensure_future(node.start())
        await until(lambda: node.web is not None and node.web.address.port)
        where = str(node.web.address)
        assert (await ask_at(where, "/healthz"))[0] == 200
        status, text = await ask_at(where, "/readyz")
        assert (status, json.loads(text)) == (503, {"ready": False, "reasons": ["this node has no place yet"]})
        assert (await ask_at(where, "/status.json"))[0] == 503
        starting.cancel()
        await asyncio.wait({starting})
        with pytest.raises(OSError):
            await asyncio.open_connection(*node.web.address)

    run(main())


def test_an_address_in_use_is_named():
    async def main():
        async with Node(**FAST, http=HTTP) as node:
            other = LiveNode(NodeConfig(http=node._live.web.address))
            with pytest.raises(BadInput, match=r"127\.0\.0\.1:\d+ is in use; choose another one with --http"):
                await other.start()

    run(main())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost:1"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
    ],
)
def test_pages_of_others_may_not_ask(headers, status):
    async def main():
        async with Node(**FAST, http=HTTP) as node:
            assert (await ask(node, "/status.json", headers=headers))[0] == status

    run(main())


async def _hung_up(caller):
    """What came before it."""
    async with asyncio.timeout(30):
        with suppress(ConnectionError):
            return await caller[0].read()


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: loc"], ids=["nothing", "half a request"])
def test_who_asks_for_nothing_does_not_stay(said):
    async def main():
        async with Node(**FAST, http=HTTP, limits=Limits(greeting_time=2.0)) as node:
            callers = [await asyncio.open_connection(*node._live.web.address) for _ in range(3)]
            for caller in callers:
                caller[1].write(said)
            async with aiohttp.ClientSession() as session:
                where = f"http://{node._live.web.address}/healthz"
                async with session.get(where) as answer:
                    assert answer.status == 200
                for caller in callers:
                    await _hung_up(caller)
                    caller[1].close()
                async with session.get(where) as answer:
                    assert answer.status == 200, "who asked stays"
            assert not node._live.web.callers._silent
            (event,) = node._live.observer.happenings.newest_first()
            assert (event["kind"], event["count"]) == ("refused", 3) and "did not greet in time" in event["detail"]

    run(main())


def test_a_crowd_that_asks_for_nothing_keeps_nobody_out():
    async def main():
        async with Node(**FAST, http=HTTP, limits=Limits(unauthenticated=5)) as node:
            callers = [await asyncio.open_connection(*node._live.web.address) for _ in range(20)]
            for caller in callers[:15]:
                await _hung_up(caller)
            assert await ask_json(node, "/healthz") == {"alive": True}
            assert len(node._live.web.callers._silent) <= 5
            for caller in callers:
                caller[1].close()

    run(main())


def test_connections_are_counted_even_if_something_was_asked():
    async def main():
        async with Node(**FAST, http=HTTP, max_clients=2, limits=Limits(unauthenticated=1)) as node:
            kept = []
            for _ in range(3):
                reader, writer = await asyncio.open_connection(*node._live.web.address)
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await reader.readuntil(b"true}")
                kept.append((reader, writer))
            one_more = await asyncio.open_connection(*node._live.web.address)
            assert not await _hung_up(one_more)
            kept[0][1].close()
            await until(lambda: len(node._live.web._runner.server.connections) == 2)
            assert await ask_json(node, "/healthz") == {"alive": True}
            for _, writer in (*kept, one_more):
                writer.close()

    run(main())


def test_the_gate_decides_by_what_is_needed():
    async def main():
        async with Node(**FAST, http=HTTP) as node:
            needs = []
            node._live.web.gate.decide = lambda request, need: needs.append(need.value) or "no token"
            status, text = await ask(node, "/status.json")
            assert (status, text, needs) == (401, "no token\n", ["look"])
            await ask(node, "/healthz")
            await ask(node, "/status.json", method="POST")
            assert needs == ["look", "nothing", "admin"]

    run(main())


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("a.b", False)]
)
def test_loopback(host, expected):
    assert is_loopback(host) is expected
