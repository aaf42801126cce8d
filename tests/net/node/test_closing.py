"""Before a node takes part it takes nothing; when it closes it lets go of everything, whatever happens meanwhile."""

import asyncio

import pytest

from cubecast.api.node import Node
from cubecast.errors import BadInput, Closed
from cubecast.net.gateway.client import ClientPort
from cubecast.net.live_node import LiveNode
from cubecast.net.settings.config import NodeConfig
from support.cluster import FAST
from support.running import run, until


def test_a_new_incarnation_while_closing_does_not_stop_the_closing():
    async def main():
        node = LiveNode(NodeConfig(**FAST))
        await node.start()
        node.port.publish("t", [b"x"])
        closing = asyncio.create_task(node.close())
        node.port.on_published("t", 1)
        await asyncio.sleep(0)
        node.port.on_reincarnated(1)
        await closing
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*node.address)
        with pytest.raises(Closed):
            node.port.publish("t", [b"y"])

    run(main())


def test_a_close_that_is_cancelled_closes_all_the_same():
    async def main():
        founder = LiveNode(NodeConfig(**FAST))
        await founder.start()
        other = LiveNode(NodeConfig(join=(founder.address,), **FAST))
        await other.start()
        founder.port.publish("t", [b"x"])
        closing = asyncio.create_task(founder.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*founder.address)
        await until(lambda: other.link_to(founder.place.node) is None)
        await other.close()

    run(main())


def test_what_is_asked_before_the_start_is_refused_and_not_lost():
    async def main():
        node = Node(**FAST)
        with pytest.raises(Closed, match="not started"):
            node.subscribe("t")
        with pytest.raises(Closed, match="not started"):
            await node.publish("t", 1)
        async with node, node.subscribe("t") as heard:
            await node.publish("t", 2, wait="stable", timeout=30)
            assert (await heard.next(30)).data == 2

    run(main())


@pytest.mark.interpreted
def test_a_node_that_leaves_takes_no_new_clients():
    async def main():
        node = LiveNode(NodeConfig(**FAST))
        await node.start()
        published = asyncio.Event()
        node.port.publishing.published_all = published.wait  # something of its own is still under way
        closing = asyncio.create_task(node.close())
        await asyncio.sleep(0)
        with pytest.raises(BadInput, match="this node is leaving"):
            await ClientPort([node.address]).start(timeout=0.2)
        assert not len(node.clients)
        published.set()
        await closing

    run(main())


@pytest.mark.parametrize("turns", [0, 1, 50])
def test_closing_ends_a_start_that_is_under_way(turns):
    async def main():
        founder = LiveNode(NodeConfig(**FAST))
        await founder.start()
        newcomer = LiveNode(NodeConfig(join=(founder.address,), **FAST | {"patience": 60.0}))
        starting = asyncio.create_task(newcomer.start())
        for _ in range(turns):
            await asyncio.sleep(0)
        await newcomer.close()
        await asyncio.gather(starting, return_exceptions=True)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*newcomer.address)
        await founder.close()

    run(main())
