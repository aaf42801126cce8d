"""The server itself: there when asked for, gone with its node, and closed to pages of other origins."""

import asyncio
import json

import pytest

from cubecast.api.node import Node
from cubecast.errors import BadInput
from cubecast.net.addresses import Address
from cubecast.net.config import NodeConfig
from cubecast.net.node import LiveNode
from cubecast.net.web.access import is_loopback
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
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
    ],
)
def test_pages_of_others_may_not_ask(headers, status):
    async def main():
        async with Node(**FAST, http=HTTP) as node:
            assert (await ask(node, "/status.json", headers=headers))[0] == status

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
