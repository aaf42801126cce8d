"""A disk that takes nothing: said at once, worked around, and made good when there is room again."""

import subprocess
import sys
from contextlib import suppress

import pytest

from cubecast.api.connect import connect
from cubecast.api.node import Node
from cubecast.errors import DamagedLog, NotDurable
from cubecast.ids import MessageId
from cubecast.log.record import Record, Run
from cubecast.log.store import Store
from support.cluster import FAST
from support.logs import batch, everything, fill, payloads
from support.raw import raw_client
from support.running import run, until

SMALL, BUDGET = 200_000, 50_000


async def until_full(store: Store, topic: str = "a") -> int:
    """How many messages were appended before the disk refused."""
    counter = 1
    with suppress(NotDurable):
        while True:
            store.append(topic, *batch(1, counter, 4, 1000), 1.0)
            counter += 4
            await store.synced(store.ticket)
    return counter - 1


def test_waiters_hear_at_once_and_nothing_is_lost_when_room_comes_back(tmp_path):
    async def story():
        store = await Store.open(tmp_path, quota=SMALL, budget=BUDGET)
        last = await until_full(store)
        with pytest.raises(NotDurable, match="full"):
            await store.synced(store.ticket)
        assert store.durable < store.ticket
        assert "full" in store.describe()["trouble"]
        assert len(payloads(await everything(store, "a"))) == last, "what is not on the disk is read from memory"
        store.set_quota(0)
        await until(lambda: store.trouble is None)
        await store.synced(store.ticket)
        await store.close()
        again = await Store.open(tmp_path)
        assert len(payloads(await everything(again, "a"))) == last
        await again.close()

    run(story())


def test_what_does_not_fit_memory_either_is_kept_by_name_and_refetched(tmp_path):
    async def story():
        store = await Store.open(tmp_path, quota=SMALL, budget=BUDGET)
        last = await until_full(store)
        counter = last + 1
        for _ in range(30):
            assert store.has_room, "there is no use in waiting"
            store.append("a", *batch(1, counter, 4, 1000), 1.0)
            counter += 4
        store.append("a", *batch(2, 1, 2, 1000), 1.0)
        assert store.describe()["pending"] < BUDGET + 5000
        store.set_quota(0)
        await until(lambda: store.trouble is None and store.durable == store.ticket)
        (damage,) = store.damaged("a")
        assert damage.last == counter + 1
        lost = counter - 1 - (damage.first - 1)
        assert damage.ids == (Run(MessageId(1, 0, damage.first), lost), Run(MessageId(2, 0, 1), 2))
        with pytest.raises(DamagedLog, match="while the disk took nothing"):
            await everything(store, "a", 1 << 20)
        peers = [Record("a", *batch(1, damage.first, lost, 1000), 1, 0.0), Record("a", *batch(2, 1, 2), 1, 0.0)]
        assert await store.repair(peers) == 1
        assert len(payloads(await everything(store, "a"))) == damage.last
        assert store.append("a", *batch(1, counter, 1), 2.0) == damage.last + 1
        await store.close()

    run(story())


def test_a_node_goes_on_without_its_log_and_says_so(tmp_path):
    async def story():
        async with Node(data=tmp_path, log=(">",), log_quota=SMALL, **FAST) as node, connect(node.address) as client:
            got = []
            reader = node.subscribe("a", on_batch=lambda batch: got.extend(batch))
            await reader.ready()
            published = 0
            with pytest.raises(NotDurable, match=r"a: published, and not durable so far: .* full"):
                for _ in range(1000):
                    published += 1
                    await client.publish("a", b"x" * 5000, wait="durable")
            for publisher in (node, client):
                with pytest.raises(NotDurable, match=r"full.*Nothing was published"):
                    await publisher.publish("a", b"y", wait="durable")
                await publisher.publish("a", b"z", wait="stable")
            assert len(got) == published + 2
            assert "full" in (await client.status())["log"]["trouble"]
            node._live.port.recorder.store.set_quota(0)
            await until(lambda: node._live.port.recorder.store.trouble is None)
            await client.publish("a", b"again", wait="durable")
            assert (await client.status())["log"]["trouble"] is None
        store = await Store.open(tmp_path)
        assert len(payloads(await everything(store, "a"))) == published + 3
        await store.close()

    run(story())


def test_what_only_its_name_is_kept_of_is_never_called_durable_not_even_later(tmp_path):
    """A client that speaks the protocol itself may ask at any time."""

    async def story():
        options = {"log_quota": SMALL, "log_budget": BUDGET}
        async with Node(data=tmp_path, log=(">",), **FAST | options) as node, raw_client(node) as client:
            store = node._live.port.recorder.store
            with pytest.raises(NotDurable):
                while True:
                    await client.publish("a", b"x" * 5000, wait="durable")
            while not store.keeps_names_only:
                await client.publish("a", b"x" * 5000, wait="stable")
            await client.publish("a", b"only its name", wait="stable")
            store.set_quota(0)
            await until(lambda: store.trouble is None and store.durable == store.ticket)
            assert store.damaged("a")
            with pytest.raises(NotDurable, match="only its name is kept"):
                await client.ask("a", "durable")
            await client.publish("a", b"again", wait="durable")

    run(story())


def test_a_log_closed_while_the_disk_is_full_says_what_it_lacks(tmp_path, caplog):
    async def story():
        store = await Store.open(tmp_path, quota=SMALL, budget=BUDGET)
        await fill(store, "b", 2)
        await until_full(store)
        await store.close()

    run(story())
    assert "the log ends without" in caplog.text


REFUSED_BY_THE_SYSTEM = """
import asyncio, resource, signal, sys
from pathlib import Path
from cubecast.errors import NotDurable
from cubecast.ids import MessageId
from cubecast.log.check import check_log
from cubecast.log.store import Store

async def story(directory):
    store = await Store.open(directory)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    last = 0
    for size in (150_001, 600_001):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            while True:
                last += 1
                store.append("a", MessageId(1, 0, last), [b"x" * 20_000], 0.0)
                await store.synced(store.ticket)
        except NotDurable:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        while store.trouble is not None:
            await asyncio.sleep(0)
        await store.synced(store.ticket)
    await store.close()
    (topic,) = check_log(directory).topics
    assert topic.last == last and not check_log(directory).problems
    print("good", last)

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
asyncio.run(story(Path(sys.argv[1])))
"""


def test_writes_the_system_refuses_half_way_leave_nothing_behind(tmp_path):
    """A limit on the size of files, in a process of its own: the kernel writes up to it and then no more."""
    done = subprocess.run(
        [sys.executable, "-c", REFUSED_BY_THE_SYSTEM, tmp_path], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith("good"), done.stderr
