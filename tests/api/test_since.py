"""Subscriptions that begin in the past, at nodes of this process and through connections."""

import asyncio
from datetime import UTC, datetime

import pytest

from cubecast import connect, sync
from cubecast.addresses import Address
from cubecast.api.message import Gap
from cubecast.errors import BadInput
from support.cluster import cluster
from support.running import run, until


async def numbers(subscription, count, timeout=30.0):
    """So many messages, as numbers; a gap fails."""
    got = []
    while len(got) < count:
        got += [int(event.data) for event in await subscription.take(count - len(got), timeout)]
    return got


async def publish(node, first, count, topic="t"):
    await node.publish_batch(topic, [b"%d" % number for number in range(first, first + count)], wait="stable")


async def logged(node, count, topic="t"):
    """Until the node has so many in its log."""
    await until(lambda: node._live.port.recorder.store.bounds(topic)[1] >= count)


@pytest.mark.parametrize("thin", [False, True], ids=["node", "thin"])
def test_a_late_subscriber_gets_everything_and_then_goes_on(tmp_path, thin):
    async def main():
        async with cluster(1) as (founder,), cluster_node(tmp_path, founder) as node:
            await publish(founder, 0, 1000)
            await logged(node, 1000)
            client = await connect(node.address) if thin else node
            subscription = client.subscribe("t", since="beginning")
            await subscription.ready()
            await publish(founder, 1000, 500)
            assert await numbers(subscription, 1500) == list(range(1500))
            await subscription.live()
            await publish(founder, 1500, 10)
            last = [await subscription.next(30) for _ in range(10)]
            assert [message.offset for message in last] == list(range(1501, 1511))
            assert abs(last[0].time - datetime.now(UTC).timestamp()) < 60
            await client.close()

    run(main())


@pytest.mark.parametrize("thin", [False, True], ids=["node", "thin"])
def test_each_way_to_say_where(tmp_path, thin):
    async def main():
        async with cluster(1) as (founder,), cluster_node(tmp_path, founder) as node:
            for number in range(20):
                await publish(founder, number, 1)
            await logged(node, 20)
            client = await connect(node.address) if thin else node
            everything = client.subscribe("t", since="beginning")
            messages = [await everything.next(30) for _ in range(20)]
            tenth = messages[10]
            known = {(one.topic, one.source, one.incarnation): one.counter for one in messages[:10]}
            at = datetime.fromtimestamp(tenth.time - 1e-5, UTC)  # which counts in millionths
            for since in (tenth.offset, tenth.time, at, known):
                assert await numbers(client.subscribe("t", since=since), 10) == list(range(10, 20))
            now = client.subscribe(">", since="now")
            await now.live()
            await publish(founder, 20, 3)
            assert await numbers(now, 3) == [20, 21, 22]
            for wrong in (1 << 40, "yesterday", True, [1], -1):
                with pytest.raises(BadInput):
                    await client.subscribe("t", since=wrong).ended()
            with pytest.raises(BadInput, match="belongs to one topic"):
                await client.subscribe(">", since=3).ended()
            with pytest.raises(BadInput, match="keeps no log"):
                founder.subscribe("t", since="beginning")
            await client.close()

    run(main())


@pytest.mark.parametrize("thin", [False, True], ids=["node", "thin"])
def test_a_slow_reader_keeps_little_in_memory_and_holds_nobody_back(tmp_path, thin):
    async def main():
        async with cluster(1) as (founder,), cluster_node(tmp_path, founder) as node:
            payload = bytes(10_000)
            await founder.publish_batch("t", [payload] * 1000, wait="stable")
            await logged(node, 1000)
            client = await connect(node.address) if thin else node
            slow = client.subscribe("t", since="beginning", budget=100_000)
            await until(lambda: slow.held >= 100_000)
            await founder.publish_batch("t", [payload] * 1000, wait="stable", timeout=30)
            assert slow.held < 10_000_000  # what was on its way through the connection comes on top of the budget
            offsets = [(await slow.next(30)).offset for _ in range(2000)]
            assert offsets == list(range(1, 2001))
            await client.close()

    run(main())


@pytest.mark.parametrize("policy", ["drop-oldest", "drop-newest", "disconnect"])
def test_nothing_is_dropped_while_a_subscription_is_behind(tmp_path, policy):
    async def main():
        async with cluster(1, data=tmp_path, log=(">",)) as (node,):
            await publish(node, 0, 20_000)
            await logged(node, 20_000)
            subscription = node.subscribe("t", since="beginning", when_slow=policy, budget=20_000)
            assert await numbers(subscription, 20_000) == list(range(20_000))

    run(main())


def test_a_client_that_moves_between_nodes_with_logs_misses_and_repeats_nothing(tmp_path):
    async def main():
        options = {"log": (">",)}
        async with (
            cluster(1) as (founder,),
            cluster_node(tmp_path / "1", founder) as first,
            cluster_node(tmp_path / "2", founder, **options) as second,
        ):
            client = await connect(first.address)
            client._port._dialler._named.append(Address.parse(second.address))  # where it goes, and not to the founder
            await publish(founder, 0, 100)
            await logged(first, 100)
            middle = client.subscribe("t", since=51)
            early = client.subscribe(">", since="beginning")
            assert await numbers(middle, 50) == list(range(50, 100))
            assert await numbers(early, 100) == list(range(100))
            await middle.live()
            await early.live()
            await publish(founder, 100, 10)
            await first.close()
            await publish(founder, 110, 10)
            assert await numbers(middle, 20) == list(range(100, 120))
            assert await numbers(early, 20) == list(range(100, 120))
            await publish(founder, 120, 5)
            assert await numbers(middle, 5) == list(range(120, 125))
            await client.close()

    run(main())


def test_a_client_that_moves_to_a_node_without_a_log_is_told_of_a_gap(tmp_path):
    async def main():
        async with cluster(1) as (founder,), cluster_node(tmp_path, founder) as first:
            client = await connect(first.address)  # which tells of the founder
            await publish(founder, 0, 10)
            subscription = client.subscribe("t", since="beginning")
            assert await numbers(subscription, 10) == list(range(10))
            await first.close()
            gaps = [await subscription.next(30) for _ in range(2)]
            assert all(isinstance(gap, Gap) for gap in gaps) and "moved" in gaps[0].reason
            await publish(founder, 10, 5)
            assert await numbers(subscription, 5) == list(range(10, 15))
            await client.close()

    run(main())


@pytest.mark.parametrize("since", ["beginning", 1, 0.5, "now", {}], ids=str)
def test_nobody_waits_for_a_past_that_the_new_node_does_not_have(tmp_path, since):
    """It had not caught up when its node was lost: it never does, and says what is missing instead."""

    async def main():
        async with cluster(1) as (founder,), cluster_node(tmp_path, founder) as first:
            await founder.publish_batch("t", [bytes(10_000)] * 1000, wait="stable")
            await logged(first, 1000)
            client = await connect(first.address)  # which tells of the founder
            subscription = client.subscribe("t", since=since, budget=1000, gaps="yield")
            if since != "now":
                await until(lambda: subscription.held >= 1000)
            else:
                await subscription.ready()
            await first.close()
            seen = []
            async with asyncio.timeout(60):
                while len([event for event in seen if isinstance(event, Gap)]) < 2:
                    seen += await subscription.take(100)
                await subscription.live()
                await publish(founder, 1000, 5)
                while isinstance(seen[-1], Gap) or seen[-1].data != b"1004":
                    seen += await subscription.take(100)
            await client.close()

    run(main())


def test_without_an_event_loop(tmp_path):
    async def main():
        async with cluster(1, data=tmp_path, log=(">",)) as (node,):
            await publish(node, 0, 100)
            await logged(node, 100)

            def read():
                with sync.connect(node.address) as client:
                    subscription = client.subscribe("t", since=91)
                    return [subscription.next(30).text() for _ in range(10)]

            assert await asyncio.to_thread(read) == [str(number) for number in range(90, 100)]

    run(main())


def cluster_node(directory, founder, **options):
    from cubecast.api.node import Node
    from support.cluster import FAST

    return Node(join=[founder.address], data=directory, **FAST | {"log": (">",)} | options)
