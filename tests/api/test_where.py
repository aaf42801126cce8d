"""Subscriptions with a filter over headers: at nodes of this process and through connections, live and in the log."""

import random

import pytest

from cubecast import connect, sync
from cubecast.api.node import Node
from cubecast.errors import BadInput
from cubecast.protocol.filters import parse
from support.cluster import FAST, cluster
from support.running import run, until

WHERE = "price >= 10 and region in ('eu', 'us')"


async def texts(subscription, count):
    return [(await subscription.next(30)).text() for _ in range(count)]


@pytest.mark.parametrize("thin", [False, True], ids=["node", "thin"])
def test_only_what_matches_arrives(thin):
    async def main():
        async with cluster(2) as (ann, bob):
            client = await connect(bob.address) if thin else bob
            async with client.subscribe("orders.>", where=WHERE) as some, client.subscribe("orders.>") as everything:
                await ann.publish("orders.a", "dear", headers={"price": 12.5, "region": "eu"})
                await ann.publish("orders.a", "cheap", headers={"price": 9, "region": "eu"})
                await ann.publish("orders.b", "far", headers={"price": 12.5, "region": "asia"})
                await ann.publish("orders.b", "true is no number", headers={"price": True, "region": "eu"})
                await ann.publish_batch("orders.b", [b"plain"] * 3)
                await ann.publish("orders.c", "last", headers={"price": 10, "region": "us", "urgent": False})
                assert await texts(some, 2) == ["dear", "last"]
                heard = [await everything.next(30) for _ in range(8)]
                assert heard[-1].headers == {"price": 10, "region": "us", "urgent": False}
                assert [type(value) for value in heard[-1].headers.values()] == [int, str, bool]
            await client.close()

    run(main())


@pytest.mark.parametrize("thin", [False, True], ids=["node", "thin"])
def test_what_is_left_out_of_a_batch_leaves_counters_and_order_alone(thin):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)

    async def main():
        async with cluster(2) as (ann, bob):
            client = await connect(bob.address) if thin else bob
            wanted = {where: parse(where) for where in ("n < 3", "n >= 3 or exists(x)", "topic ^= 'a'", "n != 5")}
            async with client.subscribe("*") as everything:
                found = {where: client.subscribe("*", where=where) for where in wanted}
                for one in found.values():
                    await one.ready()
                for number in range(300):
                    headers = {"n": rng.randrange(8)} | ({"x": rng.choice(["a", 1.5])} if rng.random() < 0.3 else {})
                    await ann.publish(rng.choice("ab"), str(number), headers=headers)
                await ann.publish("a", "end", headers={"n": 0, "x": True})
                heard = [await everything.next(30) for _ in range(301)]
                for where, subscription in found.items():
                    right = [one for one in heard if wanted[where].matches({**one.headers, "topic": one.topic})]
                    got = [await subscription.next(30) for _ in right]
                    assert [(one.topic, one.id, one.data) for one in got] == [
                        (one.topic, one.id, one.data) for one in right
                    ], where
            await client.close()

    run(main())


@pytest.mark.parametrize("thin", [False, True], ids=["node", "thin"])
def test_the_logs_past_is_filtered_too_and_offsets_stay(tmp_path, thin):
    async def main():
        async with (
            cluster(1) as (founder,),
            Node(join=[founder.address], data=tmp_path, **FAST | {"log": (">",)}) as node,
        ):
            for number in range(10):
                await founder.publish("t", str(number), headers={"even": number % 2 == 0, "n": number}, wait="stable")
            await until(lambda: node._live.port.recorder.store.bounds("t")[1] >= 10)
            client = await connect(node.address) if thin else node
            subscription = client.subscribe("t", since="beginning", where="even = true and n > 2")
            past = [await subscription.next(30) for _ in range(3)]
            assert [(one.text(), one.offset, one.counter) for one in past] == [("4", 5, 5), ("6", 7, 7), ("8", 9, 9)]
            await subscription.live()
            for number in range(10, 14):
                await founder.publish("t", str(number), headers={"even": number % 2 == 0, "n": number})
            later = [await subscription.next(30) for _ in range(2)]
            assert [(one.text(), one.offset) for one in later] == [("10", 11), ("12", 13)]
            await client.close()

    run(main())


def test_a_client_that_moves_takes_its_filter_along():
    async def main():
        async with cluster(2) as (ann, bob):
            cid = Node(join=[ann.address], **FAST)
            await cid.start()
            client = await connect(cid.address)
            subscription = client.subscribe("t", where="n > 1", gaps="ignore")
            await subscription.ready()
            await cid.close()
            async with client.subscribe("moved") as moved:  # ready at another node
                await ann.publish("t", "no", headers={"n": 1})
                await bob.publish("moved", "by now the other subscription is there, too")
                await moved.next(30)
                await ann.publish("t", "yes", headers={"n": 2})
                assert await texts(subscription, 1) == ["yes"]
            await client.close()

    run(main())


def test_a_server_answers_what_matches_and_nothing_else():
    async def main():
        async with cluster(2) as (ann, bob):
            small = bob.serve("double", lambda message: ["small", message.json() * 2], where="size = 'small'")
            large = ann.serve("double", lambda message: ["large", message.json() * 2], where="size != 'small'")
            await small.ready()
            await large.ready()
            for size, number in (("small", 2), ("huge", 20)):
                answer = await ann.request("double", number, headers={"size": size}, timeout=30)
                assert answer.json() == [{"huge": "large"}.get(size, size), number * 2]

    run(main())


WRONG = {
    "price >": "filter, column 8",
    "price > 'a'": "filter, column 9",
    "price & 3": "filter, column 7",
    "": "filter, column 1",
    "a in (" + ", ".join(map(str, range(65))) + ")": "1 to 64 values",
}


@pytest.mark.parametrize("thin", [False, True], ids=["node", "thin"])
def test_what_is_no_filter_is_refused_with_the_column_and_nothing_is_subscribed(thin):
    async def main():
        async with cluster(1) as (node,):
            client = await connect(node.address) if thin else node
            for wrong, why in WRONG.items():
                with pytest.raises(BadInput, match=why):
                    client.subscribe("t", where=wrong)
            assert (await node.status())["subscriptions"] == 0
            for headers in ({"a": None}, {1: "a"}, {"a": float("nan")}, {"a": 1 << 64}, {"a": [1]}):
                with pytest.raises(BadInput, match="header"):
                    await client.publish("t", b"", headers=headers)
            await client.close()

    run(main())


def test_without_an_event_loop():
    async def main(stop):
        async with cluster(1) as (node,):
            stop["address"] = node.address
            await until(lambda: "done" in stop)

    import threading

    shared: dict[str, str] = {}
    thread = threading.Thread(target=lambda: run(main(shared)))
    thread.start()
    try:
        while "address" not in shared:
            thread.join(0.01)
            assert thread.is_alive()
        with sync.connect(shared["address"]) as client, client.subscribe("t", where="ok = true") as subscription:
            for ok in (False, True):
                client.publish("t", f"{ok}", headers={"ok": ok})
            assert subscription.next(30).text() == "True"
            with pytest.raises(BadInput, match="column 4"):
                client.subscribe("t", where="ok maybe")
    finally:
        shared["done"] = ""
        thread.join(30)
