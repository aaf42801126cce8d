"""Nodes that keep a log: what they deliver is in it, and who asks for durability gets it."""

import pytest

from cubecast.api.connect import connect
from cubecast.api.envelope import bodies
from cubecast.api.node import Node
from cubecast.errors import BadInput
from cubecast.log.store import Store
from support.cluster import FAST, cluster
from support.running import run, until


async def texts(store: Store, topic: str) -> list[str]:
    offset, found = 1, []
    while records := await store.read(topic, offset, 1 << 20):
        found += [body.decode() for record in records for body in bodies(record.payloads)]
        offset = records[-1].last + 1
    return found


def store_of(node: Node) -> Store:
    return node._live.port.recorder.store


def test_a_node_that_follows_everything_logs_everything(tmp_path):
    async def story():
        async with (
            cluster(2) as nodes,
            Node(join=[nodes[0].address], data=tmp_path, log=(">",), **FAST) as keeper,
        ):
            for number in range(20):
                await nodes[number % 2].publish(f"t.{number % 3}", f"n{number}", wait="stable")
            await keeper.publish("t.0", "own", wait="stable")
            store = store_of(keeper)
            await until(lambda: sum(store.bounds(topic)[1] for topic in store.topics()) == 21)
            assert await texts(store, "t.0") == [f"n{number}" for number in range(0, 20, 3)] + ["own"]

    run(story())


def test_a_topic_two_patterns_select_is_logged_once(tmp_path):
    async def story():
        async with Node(data=tmp_path, log=("a.*", "a.b", "c"), **FAST) as node:
            await node.publish("a.b", "x", wait="durable")
            await node.publish("c", "y", wait="durable")
            await node.publish("d", "z", wait="stable")
            assert store_of(node).topics() == ["a.b", "c"]
            assert await texts(store_of(node), "a.b") == ["x"]

    run(story())


def test_durable_publications_are_on_the_disk(tmp_path):
    async def story():
        async with Node(data=tmp_path, log=(">",), **FAST) as node, connect(node.address) as client:
            await node.publish("a", "first", wait="durable")
            assert store_of(node).durable == 1
            await client.publish("a", "second", wait="durable")
            assert store_of(node).durable == 2
            await client.publish_batch("a", ["third", "fourth"], wait="durable")
            assert store_of(node).durable == store_of(node).ticket == 3
            assert (await node.status())["log"]["messages"] == 4
        store = await Store.open(tmp_path)
        assert await texts(store, "a") == ["first", "second", "third", "fourth"]
        await store.close()

    run(story())


def test_without_a_log_of_the_topic_nothing_durable_is_published(tmp_path):
    async def story():
        async with (
            Node(**FAST) as plain,
            Node(join=[plain.address], data=tmp_path, log=("a.>",), **FAST) as keeper,
            connect(plain.address) as client,
            connect(keeper.address) as other,
        ):
            got = []
            heard = keeper.subscribe(">", on_batch=lambda batch: got.extend(batch))
            await heard.ready()
            for publisher in (plain, client):
                with pytest.raises(BadInput, match="keeps no log"):
                    await publisher.publish("a.b", "x", wait="durable")
            for publisher in (keeper, other):
                with pytest.raises(BadInput, match="does not keep the topic"):
                    await publisher.publish("b", "x", wait="durable")
            await other.publish("a.b", "y", wait="durable")
            assert [message.text() for message in got] == ["y"]

    run(story())


def test_a_log_needs_a_place():
    with pytest.raises(BadInput, match="a log needs a place"):
        Node(log=(">",))
