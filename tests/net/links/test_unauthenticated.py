"""Callers that never say who they are keep nobody else out."""

import asyncio
import contextlib

from cubecast.net.live_node import LiveNode
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.security import Limits

DEADLINE = 60.0


async def _silent(address, count):
    return [await asyncio.open_connection(*address) for _ in range(count)]


async def _closed(reader):
    async with asyncio.timeout(DEADLINE):
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""


def test_a_crowd_of_silent_callers_does_not_keep_a_node_from_joining():
    async def scenario():
        first = LiveNode(NodeConfig(dimension=2))
        await first.start()
        crowd = await _silent(first.address, Limits().unauthenticated + 20)
        second = LiveNode(NodeConfig(join=(first.address,)))
        async with asyncio.timeout(DEADLINE):
            await second.start()
        assert first.reception.unauthenticated <= Limits().unauthenticated
        for reader, _ in crowd[:20]:
            await _closed(reader)
        for _, writer in crowd:
            writer.close()
        await second.close()
        await first.close()

    asyncio.run(scenario())


def test_a_caller_has_a_limited_time_to_greet():
    async def scenario():
        node = LiveNode(NodeConfig(dimension=1, limits=Limits(greeting_time=0.1)))
        await node.start()
        ((reader, writer),) = await _silent(node.address, 1)
        writer.write(b"\x00\x00")
        await _closed(reader)
        assert node.reception.unauthenticated == 0
        writer.close()
        await node.close()

    asyncio.run(scenario())
