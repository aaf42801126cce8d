"""The whole way: applications on live nodes and thin clients, on loopback."""

import asyncio

import pytest

import cubecast
from cubecast.errors import BadInput, SlowConsumer
from support.cluster import FAST, cluster
from support.running import run, until

ONE_MESSAGE = 100 + 64


@pytest.mark.parametrize("aggregation", [False, True], ids=["plain", "aggregated"])
def test_three_nodes_hear_each_other_in_causal_order(aggregation):
    async def main():
        async with cluster(3, aggregation=aggregation) as (ann, bob, cid):
            subscriptions = [node.subscribe("chat", gaps="raise") for node in (ann, bob, cid)]
            for heard in subscriptions:
                await heard.ready()
            of_ann, of_bob, of_cid = subscriptions
            for number in range(50):
                await ann.publish("chat", {"question": number})
                assert (await of_bob.next(30)).data == {"question": number}
                await bob.publish("chat", {"answer": number}, wait="stable")
                assert (await of_bob.next(30)).data == {"answer": number}
            expected = [{kind: number} for number in range(50) for kind in ("question", "answer")]
            for heard in (of_ann, of_cid):
                assert [(await heard.next(30)).data for _ in expected] == expected
            assert {member["node"] for member in (await cid.status())["members"]} == {ann.id, bob.id, cid.id}

    run(main())


def test_wildcards_hear_topics_that_begin_later():
    async def main():
        async with cluster(2) as (ann, bob), bob.subscribe("orders.>", gaps="raise") as orders:
            await ann.publish("orders.eu.new", 1)
            await ann.publish("users", 2)
            await ann.publish("orders.us", 3)
            got = [await orders.next(30) for _ in range(2)]
            assert {(message.topic, message.data) for message in got} == {("orders.eu.new", 1), ("orders.us", 3)}

    run(main())


def test_questions_are_answered_across_nodes_and_clients():
    async def main():
        async with cluster(2) as (ann, bob), cubecast.connect(ann.address) as thin:
            async with bob.serve("add", lambda message: sum(message.json())):
                assert (await ann.request("add", [1, 2])).data == 3
                assert (await thin.request("add", [3, 4])).data == 7
            async with thin.serve("name", lambda message: "thin"):
                assert (await bob.request("name", None)).data == "thin"

    run(main())


def test_a_thin_client_moves_when_its_node_leaves():
    async def main():
        async with cluster(2) as (ann, bob):
            leaving = cubecast.Node(join=[ann.address], **FAST)
            await leaving.start()
            async with cubecast.connect(leaving.address) as thin, thin.subscribe("t") as heard:
                await bob.publish("t", 1)
                assert (await heard.next(30)).data == 1
                await leaving.close()
                for text in ("moved", "all arrives"):
                    gap = await heard.next(30)
                    assert isinstance(gap, cubecast.Gap) and text in gap.reason
                await thin.publish("t", 2, wait="stable")
                await bob.publish("t", 3)
                assert [(await heard.next(30)).data for _ in range(2)] == [2, 3]

    run(main())


@pytest.mark.parametrize("where", ["node", "thin"])
def test_a_slow_reader_that_blocks_loses_nothing_and_stays_in_its_budget(where):
    async def main():
        async with cluster(2, topic_budget=20 * ONE_MESSAGE) as (ann, bob), cubecast.connect(bob.address) as thin:
            reader = bob if where == "node" else thin
            async with reader.subscribe("t", gaps="raise", budget=20 * ONE_MESSAGE, patience=60) as heard:
                publishing = asyncio.create_task(publish(ann, 400))
                most = 0
                for number in range(400):
                    message = await heard.next(30)
                    assert int(message.data) == number
                    most = max(most, heard.held)
                    await asyncio.sleep(0)
                await publishing
                # What was on its way when the reader filled up still comes: at most the publisher's own budget.
                assert most <= 2 * 20 * ONE_MESSAGE + 2 * ONE_MESSAGE

    async def publish(node, count):
        for number in range(count):
            await node.publish("t", b"%0100d" % number, timeout=30)

    run(main())


def test_one_that_never_reads_does_not_stop_the_others_for_long():
    async def main():
        async with cluster(2) as (ann, bob):
            dead = bob.subscribe("t", budget=ONE_MESSAGE, patience=0.1)
            async with ann.subscribe("t", gaps="raise") as heard:
                await dead.ready()
                for number in range(100):
                    await ann.publish("t", b"%0100d" % number)
                    await asyncio.sleep(0)
                await ann.publish("t", b"last", wait="stable", timeout=30)
                with pytest.raises(SlowConsumer):
                    await dead.ended()
                assert [int(message.data) for message in [await heard.next(30) for _ in range(100)]] == list(range(100))

    run(main())


def test_a_node_that_reads_its_own_publications_slowly_waits_for_itself():
    async def main():
        async with (
            cluster(1, topic_budget=5 * ONE_MESSAGE) as (ann,),
            ann.subscribe("t", gaps="raise", budget=5 * ONE_MESSAGE, patience=60) as heard,
        ):
            with pytest.raises(TimeoutError):
                for number in range(1000):
                    await ann.publish("t", b"%0100d" % number, timeout=0.2)
            assert number < 100
            assert [int((await heard.next(30)).data) for _ in range(number)] == list(range(number))

    run(main())


def test_a_subscriber_that_leaves_while_it_is_called_does_not_hurt_the_next():
    async def main():
        async with cluster(2) as (ann, bob):
            first, second, third = [], [], []
            one = bob.subscribe("t", on_batch=lambda batch: (first.extend(batch.payloads), one.close()))
            bob.subscribe("t", on_batch=lambda batch: second.extend(batch.payloads))
            await one.ready()
            await ann.publish("t", b"1", wait="stable")
            await ann.publish("t", b"2", wait="stable")
            await until(lambda: len(second) == 2)
            assert (first, second, third) == ([b"1"], [b"1", b"2"], [])

    run(main())


def test_cancelled_readers_and_publishers_lose_nothing():
    async def main():
        async with cluster(2) as (ann, bob), bob.subscribe("t", gaps="raise") as heard:
            seen = []

            async def read():
                async for message in heard:
                    value = message.data
                    seen.append(value)
                    if value % 3 == 0:
                        await asyncio.sleep(0)

            for start in range(0, 100, 10):
                reader = asyncio.create_task(read())
                await ann.publish_batch("t", range(start, start + 10))
                await until(lambda start=start: len(seen) > start)
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)
            while len(seen) < 100:
                seen.append((await heard.next(30)).data)
            assert seen == list(range(100))

    run(main())


def test_the_blocking_facade_talks_to_live_nodes():
    def talk(address: str) -> list[int]:
        with cubecast.sync.connect(address) as client, client.subscribe("t") as heard:
            client.publish_batch("t", range(10), wait="stable", timeout=30)
            return [heard.next(30).data for _ in range(10)]

    async def main():
        async with cluster(2) as (ann, _):
            assert await asyncio.to_thread(talk, ann.address) == list(range(10))

    run(main())


def test_the_largest_message_passes_and_a_larger_one_is_refused():
    async def main():
        async with cluster(2) as (ann, bob), cubecast.connect(ann.address) as thin, bob.subscribe("t") as heard:
            for publisher in (ann, thin):
                await publisher.publish("t", bytes(1 << 20), wait="stable", timeout=30)
                assert len((await heard.next(30)).data) == 1 << 20
                with pytest.raises(BadInput, match="1048576"):
                    await publisher.publish("t", bytes((1 << 20) + 1))

    run(main())


def test_bad_input_is_told_in_one_line():
    async def main():
        async with cluster(1, max_payload=1000) as (ann,):
            with pytest.raises(BadInput, match="1000"):
                await ann.publish("t", bytes(1001))
            with pytest.raises(BadInput, match="in use"):
                await cubecast.Node(listen=ann.address).start()
            with pytest.raises(BadInput, match="does not belong to cluster"):
                await cubecast.connect(ann.address, cluster="other")
        with pytest.raises(BadInput):
            cubecast.Node(listen="nowhere")

    run(main())


def test_a_topic_that_a_pattern_brought_is_ready_for_whoever_names_it():
    async def main():
        async with cluster(2) as (one, other), one.subscribe(">") as everything:
            await other.publish("t", 1, wait="stable")
            await everything.next(30)
            async with asyncio.timeout(30), one.subscribe("t") as named:
                await other.publish("t", 2)
                assert (await named.next(30)).data == 2

    run(main())
