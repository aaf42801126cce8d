"""Live brokers: the same interface as a cubecast node's, filters that travel, brokers that restart."""

import asyncio

import pytest

from cubecast import connect
from cubecast.api.node import Node
from cubecast.errors import BadInput
from support.brokers import BINARY_7, brokers, settings
from support.running import run, until

WHERE = "price >= 10 and region in ('eu', 'us')"


async def texts(subscription, count):
    """So many messages; a gap fails."""
    return [(await subscription.next(60)).text() for _ in range(count)]


def test_what_matches_travels_and_nothing_else():
    async def main():
        async with brokers("0-1 1-2", 1) as nodes:
            thin = await connect(nodes[2].address)
            async with (
                nodes[0].subscribe("orders.>", where=WHERE) as some,
                thin.subscribe("orders.new") as everything,
                nodes[0].subscribe("orders.new", where="price < 10") as cheap,
                nodes[0].subscribe("orders.*", where=WHERE) as other,
            ):
                await thin.publish("orders.new", "dear", headers={"price": 12.5, "region": "eu"})
                await thin.publish("orders.new", "cheap", headers={"price": 9, "region": "eu"})
                await thin.publish("orders.new", "last", headers={"price": 10, "region": "us"})
                assert await texts(some, 2) == await texts(other, 2) == ["dear", "last"]
                assert await texts(cheap, 1) == ["cheap"]
                await nodes[0].publish("orders.new", "plain")
                assert await texts(everything, 4) == ["dear", "cheap", "last", "plain"]
                status = await nodes[0].status()
                assert status["brokers"]["subscriptions"] == 4 and not status["brokers"]["without_cut"]
            await until(lambda: not nodes[0]._live.machine._tables.locals)
            await thin.close()

    run(main())


def test_what_is_published_after_ready_arrives_from_publishers_that_come_later():
    async def main():
        async with brokers(BINARY_7, 1) as nodes, nodes[3].subscribe("t", where="n >= 0") as heard:
            for number, node in enumerate((6, 0, 4, 3)):
                await nodes[node].publish("t", f"{number}", headers={"n": number})
                assert await texts(heard, 1) == [f"{number}"]

    run(main())


def test_advertisements_are_promises():
    async def main():
        async with brokers("0-1", 0) as nodes:
            thin = await connect(nodes[1].address)
            for client, topic in ((nodes[0], "a"), (thin, "b")):
                await client.advertise(topic, "price >= 10")
                await client.advertise(topic, "price >= 10")  # the same again is no change
                with pytest.raises(BadInput, match="already"):
                    await client.advertise(topic, "price >= 11")
                with pytest.raises(BadInput, match="column 9"):
                    await client.advertise("c", "price > > 1")
                async with nodes[0].subscribe(topic, where="price >= 100") as heard:
                    if client is thin:
                        with pytest.raises(BadInput, match="outside of what b is advertised with"):
                            await client.publish(topic, "x", headers={"price": 9}, wait="stable")
                    else:
                        with pytest.raises(BadInput, match=r"outside of what a is advertised with.*Nothing was"):
                            await client.publish(topic, "x", headers={"price": 9})
                    await client.publish(topic, "y", headers={"price": 120})
                    assert await texts(heard, 1) == ["y"]
                await client.unadvertise(topic)
                with pytest.raises(BadInput, match="is not advertised"):
                    await client.unadvertise(topic)
            await thin.close()

    run(main())


def test_what_is_under_way_when_its_topic_is_withdrawn_arrives_and_the_next_goes_on():
    """The brokers let go of it afterwards, and count on where the topic was left."""

    async def main():
        async with brokers("0-1", 0) as nodes, nodes[1].subscribe("a") as heard:
            for round_ in range(3):
                await nodes[0].publish_batch("a", [f"{round_}.{number}" for number in range(20)])
                await nodes[0].unadvertise("a")
                with pytest.raises(BadInput, match="is not advertised"):
                    await nodes[0].unadvertise("a")
                assert await texts(heard, 20) == [f"{round_}.{number}" for number in range(20)]
            await nodes[0].advertise("a", "price >= 1")
            await nodes[0].publish("a", "last", headers={"price": 1})
            assert await texts(heard, 1) == ["last"]
            side = nodes[0]._live.port.publishing
            await until(lambda: not side.outgoing["a"].bytes)
            assert side.outgoing["a"].stable == side.outgoing["a"].accepted == 61

    run(main())


def test_cubecast_needs_no_advertisements():
    async def main():
        async with Node() as node:
            with pytest.raises(BadInput, match="cubecast needs no advertisements"):
                await node.advertise("t")

    run(main())


def test_a_broker_that_dies_is_bypassed_and_taken_back():
    async def main():
        shared = settings(BINARY_7, 1, remove_after=5)
        nodes = {node: Node(node=node, **shared) for node in range(7)}
        for node in nodes.values():
            await node.start()
        async with nodes[3].subscribe("t") as near, nodes[6].subscribe("t", where="n >= 1") as far:
            await nodes[4].publish("t", "0", headers={"n": 0})
            assert await texts(near, 1) == ["0"]
            await kill(nodes[1])  # between the publisher and everybody
            for number in range(1, 20):
                await nodes[4].publish("t", f"{number}", headers={"n": number})
            expected = [f"{number}" for number in range(1, 20)]
            assert await texts(near, 19) == await texts(far, 19) == expected
            nodes[1] = Node(node=1, **shared)
            await nodes[1].start()
            assert nodes[1]._live.place.incarnation == 1
            async with nodes[1].subscribe("t") as back:
                await nodes[4].publish("t", "20", headers={"n": 20})
                assert await texts(near, 1) == await texts(far, 1) == await texts(back, 1) == ["20"]
                await nodes[1].publish("t", "21", headers={"n": 21})
                assert await texts(near, 1) == await texts(far, 1) == ["21"]
            status = await nodes[0].status()
            assert {one["node"]: one["incarnation"] for one in status["members"]}[1] == 1
            assert not status["brokers"]["suspected"] and not status["brokers"]["removed"]
        await asyncio.gather(*(node.close() for node in nodes.values()))

    run(main())


async def kill(node: Node) -> None:
    """As kill -9 would: no goodbye, nothing flushed."""
    live = node._live
    live.life.driver.stop()
    live.life.peers._closed = True
    for link in list(live.life.peers._links.values()):
        link.abort("killed")
    await live.reception.close()
    live.life.peers._links.clear()
    await live._shut()


WRONG = {
    "0-1 1-2 2-0": "links: 3 brokers need 2 links, not 3: they form a cycle",
    "0-1 2-3": "links: no link leads from broker 0 to broker 2; brokers form one tree",
    "0-1 1-0": "links: 1-0 is there twice",
    "0-1 1-1": "links: broker 1 is linked to itself",
    "0-1 one-2": "links: 'one-2' is no pair of brokers; write 0-1 0-2 1-3",
    "": "brokers need to know their tree",
    "1-2 2-3": "broker 0 is not in the tree",
}


@pytest.mark.parametrize("links", WRONG)
def test_what_is_no_tree_is_refused_in_one_line(links):
    async def main():
        with pytest.raises(BadInput, match=WRONG[links].replace("[", r"\[")):
            chosen = {"faults": "0"} | ({"links": links} if links else {})
            await Node(node=0, protocol="locaps", parameters=chosen).start()
        with pytest.raises(BadInput, match=r"the longest path of this tree has 3; at most faults = 1"):
            Node(node=0, protocol="locaps", parameters={"links": "0-1 1-2", "faults": "2"})

    run(main())
