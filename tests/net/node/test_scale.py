"""Many nodes, many topics, large messages, on one machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from cubecast.api.node import Node
from support.cluster import cluster
from support.running import run

CALM = {"round_length": 2.0, "retry": 2.0, "patience": 20.0, "dimension": 6}
"""Dozens of nodes share one core here: what is late is not dead."""


@asynccontextmanager
async def grown(size: int, at_once: int) -> AsyncIterator[list[Node]]:
    """One founder, whom the others join by groups; all leave at once."""
    nodes = [Node(**CALM)]
    await nodes[0].__aenter__()
    try:
        while len(nodes) < size:
            group = [Node(join=[nodes[0].address], **CALM) for _ in range(min(at_once, size - len(nodes)))]
            nodes += await asyncio.gather(*(node.__aenter__() for node in group))
        yield nodes
    finally:
        await asyncio.gather(*(node.close() for node in nodes))


@pytest.mark.slow
def test_64_nodes_in_one_process():
    async def main():
        async with grown(64, at_once=9) as nodes:
            assert sorted(node.id for node in nodes) == list(range(64))
            heard = [node.subscribe("all", gaps="raise") for node in nodes]
            await asyncio.gather(*(one.ready() for one in heard))
            for node in nodes:
                await node.publish("all", node.id)
            for one in heard:
                assert sorted([(await one.next(60)).data for _ in nodes]) == list(range(64))

    run(main(), 240)


@pytest.mark.slow
def test_1000_topics_on_8_nodes():
    topics = [f"room.{number}" for number in range(1000)]

    async def main():
        async with grown(8, at_once=1) as nodes:
            heard = [node.subscribe("room.>", gaps="raise") for node in nodes]
            await asyncio.gather(*(one.ready() for one in heard))
            for number, topic in enumerate(topics):
                await nodes[number % 8].publish(topic, number)
            for one in heard:
                got = [await one.next(60) for _ in topics]
                assert {message.topic: message.data for message in got} == {t: n for n, t in enumerate(topics)}
            assert (await nodes[0].status())["topics_in_all"] == 1000

    run(main(), 240)


def test_the_largest_message_arrives():
    async def main():
        async with cluster(3) as (ann, bob, cid), bob.subscribe("large"), cid.subscribe("large", gaps="raise") as heard:
            largest = bytes((1 << 20) - 16)
            await ann.publish("large", largest, wait="stable", timeout=30)
            assert (await heard.next(30)).data == largest

    run(main())
