"""What a reader may keep of a log: its id, offsets that are durable, and cuts."""

import json
import random

import pytest

from cubecast import Node, connect
from cubecast.api.envelope import body
from cubecast.errors import BadInput
from cubecast.log.recovery import IDENTITY
from cubecast.log.schema import DATABASE
from cubecast.log.store import Store
from support.cluster import FAST, cluster
from support.commands import running
from support.logs import batch, everything
from support.running import run, until

LIVES = 3


async def told_before_a_kill(address: str, number: int, kill) -> tuple[int, int]:
    """The durable and the last offset a client was told of when the node was killed."""
    client = await connect(address, patience=0.1)
    await client.publish("t", f"{number}", wait="durable")
    for later in range(number + 1, number + 100_000):
        await client.publish("t", f"{later}")
        (told,) = await client.log_topics()
        if told.last > told.durable:
            kill()
            await client.close()
            return told.durable, told.last
    raise AssertionError("everything was durable at once")


async def contents(directory) -> list[bytes]:
    store = await Store.open(directory)
    try:
        return [body(payload) for record in await everything(store, "t") for payload in record.payloads]
    finally:
        await store.close()


def test_nothing_told_as_durable_goes_with_a_kill_and_the_last_one_may(tmp_path):
    """The second half is what makes a reader that keeps `last` wrong: without it the first half would show nothing."""
    kept, taken_away = [], 0
    for _ in range(LIVES):
        with running("node", "--data", tmp_path, "--log", ">", "--json") as node:
            durable, last = run(told_before_a_kill(json.loads(node.line())["address"], len(kept), node.kill))
        now = run(contents(tmp_path))
        assert len(now) >= durable > len(kept)
        assert now == [b"%d" % number for number in range(len(now))]
        taken_away += len(now) < last
        kept = now
    assert taken_away, f"{LIVES} kills took nothing away: nothing was tried"


def test_the_id_stays_with_the_files(tmp_path):
    async def identity(directory) -> str:
        store = await Store.open(directory)
        store.append("t", *batch(0, 1, 1), 0.0)
        await store.close()
        return store.identity

    async def main():
        first = await identity(tmp_path / "a")
        assert len(first) == 32
        assert await identity(tmp_path / "a") == first
        (tmp_path / "a" / DATABASE).write_bytes(b"no index any more" * 100)
        assert await identity(tmp_path / "a") == first, "the index is made again, the offsets are the same"
        assert await identity(tmp_path / "b") != first
        (tmp_path / "a").rename(tmp_path / "old")
        assert await identity(tmp_path / "a") != first, "another directory under the same address"
        (tmp_path / "old" / IDENTITY).write_text("torn")
        assert await identity(tmp_path / "old") != first

        async with cluster(1, data=tmp_path / "c", log=(">",)) as (node,), await connect(node.address) as client:
            await client.publish("t", b"x", wait="durable")
            (here,), (there,) = await node.log_topics(), await client.log_topics()
            assert here == there == ("t", 1, 1, 1, (tmp_path / "c" / IDENTITY).read_text().strip())

    run(main())


def test_a_silent_publisher_costs_one_look_through_the_index(tmp_path):
    """Its last message lies far back; the next cut pays for the rows since the one before it."""

    async def main():
        store = await Store.open(tmp_path)
        store.append("t", *batch(7, 1, 1), 0.0)
        for number in range(20_000):
            store.append("t", *batch(1, number + 1, 1), float(number))
        await store.synced(store.ticket)
        steps = 0

        def count():
            nonlocal steps
            steps += 1

        await store.cut_at("t", 15_000)
        store._reader.database.set_progress_handler(count, 100)
        for offset in range(15_001, 15_101):
            assert await store.cut_at("t", offset) == {7: (0, 1), 1: (0, offset - 1)}
        store._reader.database.set_progress_handler(None, 0)
        await store.close()
        return steps

    assert run(main()) < 200, "hundreds of instructions of the database, not millions, for a hundred cuts"


@pytest.mark.parametrize("seed", range(5))
def test_cuts_and_places_are_those_of_a_plain_list(tmp_path, seed):
    """Against the messages one by one, with some of the log in memory and some of it forgotten."""
    print("seed", seed)
    draw = random.Random(seed)

    async def main():
        store = await Store.open(tmp_path)
        names, lives, counters = [], dict.fromkeys(range(4), 0), dict.fromkeys(range(4), 0)
        for step in range(60):
            source, many = draw.randrange(4), draw.randrange(1, 5)
            if draw.random() < 0.1:
                lives[source], counters[source] = lives[source] + 1, 0
            first, payloads = batch(source, counters[source] + 1, many)
            store.append("t", first._replace(incarnation=lives[source]), payloads, float(step))
            names += [(source, lives[source], counters[source] + 1 + n) for n in range(many)]
            counters[source] += many
            if step == 45:
                await store.synced(store.ticket)
        assert 0 < store.durable_end("t") < len(names), "both kinds are there"
        for offset in range(len(names) + 1):
            expected: dict[int, tuple[int, int]] = {}
            for source, life, counter in names[:offset]:
                expected[source] = max(expected.get(source, (-1, 0)), (life, counter))
            assert await store.cut_at("t", offset) == expected
            assert await store.offset_after_cut("t", expected) == offset + 1
        await store.synced(store.ticket)
        whole = {offset: await store.cut_at("t", offset) for offset in range(1, len(names) + 1)}
        await store.close()
        return names, whole

    async def after_forgetting(names, whole):
        store = await Store.open(tmp_path)
        await store._write(lambda ledger: ledger.index.forget("t", first_kept(ledger, len(names) // 2), 0))
        await store.close()
        store = await Store.open(tmp_path)
        first, last = store.bounds("t")
        assert 1 < first < last
        for offset in range(first, last + 1):
            assert await store.offset_after_cut("t", await store.cut_at("t", offset)) == offset + 1
            found = await store.cut_at("t", offset)
            assert all(found[source] >= place for source, place in whole[offset].items()), "nothing forgotten is missed"
        await store.close()

    run(after_forgetting(*run(main())))


def first_kept(ledger, about: int) -> int:
    query = "SELECT min(offset) FROM batches WHERE offset >= ?"
    return ledger.index.database.execute(query, (about,)).fetchone()[0]


@pytest.mark.parametrize("thin", [False, True])
def test_a_cut_finds_its_place_again(tmp_path, thin):
    async def main():
        async with cluster(1, data=tmp_path, log=(">",)) as (node,), await connect(node.address) as connected:
            client = connected if thin else node
            await node.publish_batch("t", [b"%d" % number for number in range(50)], wait="durable")
            await connected.publish_batch("t", [b"%d" % number for number in range(50, 80)], wait="durable")
            cut = await client.log_cut("t", 30)
            assert sum(cut.values()) == 30
            assert all(topic == "t" for topic, _, _ in cut)
            assert await client.log_place("t", cut) == 31
            assert await client.log_place("t", {}) == 1
            assert await client.log_place("t", await client.log_cut("t", 80)) == 81
            assert await client.log_cut("t", 0) == {}
            with pytest.raises(BadInput, match="ends with offset 80"):
                await client.log_cut("t", 81)
            following = client.subscribe("t", since=cut)
            assert (await anext(aiter(following))).offset == 31
            following.close()

    run(main())


def test_another_node_places_the_same_cut(tmp_path):
    """Two nodes log the same messages, each in its own order; behind the cut of one the other finds the rest."""

    async def main():
        async with (
            cluster(1, data=tmp_path / "a", log=(">",)) as (one,),
            Node(join=[one.address], data=tmp_path / "b", log=(">",), **FAST) as two,
        ):
            for number in range(20):
                await (one, two)[number % 2].publish("t", f"{number}", wait="stable")
            for node in (one, two):
                await until(lambda node=node: node._live.port.recorder.history.bounds("t")[1] == 20)
            cut = await one.log_cut("t", 11)
            place = await two.log_place("t", cut)
            behind = (await two.read_log("t", place).table()).to_pylist()
            missing = [row for row in behind if row["counter"] > cut.get(("t", row["source"], row["incarnation"]), 0)]
            rest = (await one.read_log("t", 12).table()).to_pylist()
            assert sorted(row["payload"] for row in missing) == sorted(row["payload"] for row in rest)

    run(main())
