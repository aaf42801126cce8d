"""Appending, syncing, reading, and finding one's place in a log."""

import asyncio

import pytest

from cubecast.errors import BadInput
from cubecast.ids import MessageId
from cubecast.log.store import Store
from support.logs import batch, everything, payloads
from support.running import run


def test_what_is_appended_is_read_in_order_before_and_after_it_is_on_the_disk(tmp_path):
    async def story():
        store = await Store.open(tmp_path)
        assert store.append("a", *batch(1, 1, 3), 10.0) == 1
        assert store.append("b", *batch(1, 1, 1), 10.5) == 1
        assert store.append("a", *batch(2, 1, 2), 11.0) == 4
        assert store.durable == 0
        before = await everything(store, "a")
        await store.synced(store.ticket)
        assert store.durable == store.ticket == 3
        after = await everything(store, "a")
        assert before == after
        assert payloads(after) == [b"m1.1", b"m1.2", b"m1.3", b"m2.1", b"m2.2"]
        assert store.bounds("a") == (1, 5)
        assert store.topics() == ["a", "b"]
        assert store.cut("a") == {1: (0, 3), 2: (0, 2)}
        (middle,) = await store.read("a", 2, 1)
        assert middle.first == MessageId(1, 0, 2)
        assert middle.payloads == [b"m1.2", b"m1.3"]
        assert await store.read("a", 6, 1000) == []
        assert await store.read("nowhere", 1, 1000) == []
        assert store.bounds("nowhere") == (1, 0)
        await store.close()

    run(story())


def test_a_log_goes_on_where_it_was_closed(tmp_path):
    async def story():
        for life in range(3):
            store = await Store.open(tmp_path)
            assert store.bounds("a") == (1, 2 * life)
            assert store.append("a", *batch(1, 1 + 2 * life, 2), 10.0 - life) == 1 + 2 * life
            await store.close()
        store = await Store.open(tmp_path)
        records = await everything(store, "a")
        assert [record.offset for record in records] == [1, 3, 5]
        assert [record.at for record in records] == [10.0, 10.0, 10.0], "time never runs backwards"
        assert store.cut("a") == {1: (0, 6)}
        await store.close()

    run(story())


def test_a_place_is_found_by_time_and_by_cut(tmp_path):
    async def story():
        store = await Store.open(tmp_path)
        for step in range(50):
            store.append("a", *batch(step % 3, 1 + 4 * (step // 3), 4), float(step))
        await store.synced(store.ticket)
        store.append("a", *batch(0, 69, 4), 50.0)  # still in memory
        assert await store.offset_at("a", -1.0) == 1
        assert await store.offset_at("a", 0.5) == 5
        assert await store.offset_at("a", 48.0) == 48 * 4 + 1
        assert await store.offset_at("a", 49.5) == 201
        assert await store.offset_at("a", 99.0) == 205
        assert await store.offset_after_cut("a", {}) == 1
        assert await store.offset_after_cut("a", {0: (0, 72), 1: (0, 6), 2: (0, 64)}) == 4 * 4 + 3
        assert await store.offset_after_cut("a", {0: (0, 68), 1: (9, 0), 2: (0, 64)}) == 201
        assert await store.offset_after_cut("a", {0: (0, 70), 1: (0, 68), 2: (0, 64)}) == 203
        assert await store.offset_after_cut("a", store.cut("a")) == 205
        await store.close()

    run(story())


def test_what_is_delivered_in_one_turn_is_one_transaction(tmp_path):
    async def story():
        store = await Store.open(tmp_path)
        tickets = []
        for counter in range(1, 11):
            store.append("a", *batch(1, counter, 1), 0.0)
            tickets.append(store.ticket)
        waiting = [asyncio.ensure_future(store.synced(ticket)) for ticket in tickets]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert store.durable == 10
        await store.close()

    run(story())


def test_a_directory_has_one_writer(tmp_path):
    async def story():
        store = await Store.open(tmp_path)
        with pytest.raises(BadInput, match="another node writes its log there"):
            await Store.open(tmp_path)
        await store.close()
        await (await Store.open(tmp_path)).close()

    run(story())


def test_when_too_much_waits_for_the_disk_there_is_no_room(tmp_path):
    async def story():
        store = await Store.open(tmp_path, budget=1000)
        room, full = asyncio.Event(), asyncio.Event()
        store.on_room, store.on_full = room.set, full.set
        store.append("a", *batch(1, 1, 1), 0.0)
        assert store.has_room and not full.is_set()
        store.append("a", MessageId(1, 0, 2), [b"x" * 1000], 0.0)
        assert not store.has_room and full.is_set()
        await room.wait()
        assert store.has_room
        await store.close()

    run(story())
