"""A node that closes lets go of everything, whatever happens meanwhile."""

import asyncio

import pytest

from cubecast.errors import Closed
from cubecast.net.config import NodeConfig
from cubecast.net.node import LiveNode
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

    run(main(), 20)


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
        await until(lambda: other.link_to(founder.place.node) is None, 10)
        await other.close()

    run(main(), 20)
