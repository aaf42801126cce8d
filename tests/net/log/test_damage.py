"""What was written and is not what it was: found, named, never passed over, and put right."""

import logging
import sqlite3

import pytest

from cubecast.errors import BadInput, DamagedLog
from cubecast.ids import MessageId
from cubecast.net.log.record import Record, Run
from cubecast.net.log.schema import DATABASE, MARKS
from cubecast.net.log.store import Store
from support.logs import batch, everything, fill, flip, payloads
from support.running import run


def change(directory, statement, *values):
    """Behind the log's back."""
    database = sqlite3.connect(directory / DATABASE)
    with database:
        database.execute(statement, values)
    database.close()


async def a_closed_log(directory, batches=9):
    store = await Store.open(directory)
    await fill(store, "a", batches)
    good = await everything(store, "a")
    await store.close()
    return good


def test_a_flipped_bit_in_a_message_is_named_and_never_handed_out(tmp_path):
    async def story():
        good = await a_closed_log(tmp_path)
        content = (tmp_path / DATABASE).read_bytes()
        flip(tmp_path / DATABASE, content.index(b"m1.5"))
        store = await Store.open(tmp_path)
        assert await store.read("a", 1, 1 << 20) == good[:4], "what comes before it is good"
        with pytest.raises(DamagedLog, match=r"log\.sqlite: topic a, offsets 17 to 20: row 5 of batches: its messages"):
            await store.read("a", 17, 1000)
        (damage,) = store.damaged("a")
        assert damage[:3] == (17, 20, (Run(MessageId(1, 0, 5), 4),))
        assert await store.read("a", 21, 1 << 20) == good[5:]
        await store.close()
        again = await Store.open(tmp_path)
        assert again.damaged("a") == [damage], "it is known without reading there"
        with pytest.raises(DamagedLog):
            await again.read("a", 19, 1000)
        await again.close()

    run(story())


def test_a_damaged_range_is_put_right_with_a_peers_records(tmp_path):
    async def story():
        good = await a_closed_log(tmp_path)
        change(tmp_path, "UPDATE batches SET block=zeroblob(9) WHERE offset=17")
        store = await Store.open(tmp_path)
        with pytest.raises(DamagedLog):
            await store.read("a", 17, 1000)
        other = Record("a", MessageId(1, 0, 3), [f"m1.{number}".encode() for number in range(3, 8)], 901, 7.0)
        rest = Record("a", MessageId(1, 0, 7), [b"m1.7", b"m1.8", b"m1.9"], 906, 7.0)
        assert await store.repair([other]) == 0, "not all of it"
        assert await store.repair([other, rest]) == 1
        assert store.damaged("a") == []
        assert payloads(await everything(store, "a")) == payloads(good)
        await store.close()
        again = await Store.open(tmp_path)
        assert payloads(await everything(again, "a")) == payloads(good)
        assert [one.at for one in await everything(again, "a")] == sorted(
            one.at for one in await everything(again, "a")
        )
        await again.close()

    run(story())


@pytest.mark.parametrize("column", ["count", "at", "source", "incarnation", "counter", "head", "body"])
def test_a_changed_name_is_found_and_the_right_one_worked_out(tmp_path, column):
    async def story():
        good = await a_closed_log(tmp_path)
        change(tmp_path, f"UPDATE batches SET {column}={column}+1 WHERE offset=17")
        store = await Store.open(tmp_path)
        with pytest.raises(DamagedLog, match="offsets 17 to 20"):
            await everything(store, "a")
        assert store.damaged("a")[0].ids == (Run(MessageId(1, 0, 5), 4),)
        assert await store.repair(good) == 1
        assert payloads(await everything(store, "a")) == payloads(good)
        await store.close()

    run(story())


def test_a_missing_batch_is_found(tmp_path):
    async def story():
        good = await a_closed_log(tmp_path)
        change(tmp_path, "DELETE FROM batches WHERE offset=17")
        store = await Store.open(tmp_path)
        with pytest.raises(DamagedLog, match="offsets 17 to 20"):
            await store.read("a", 18, 1000)
        assert await store.repair(good) == 1
        assert payloads(await everything(store, "a")) == payloads(good)
        await store.close()

    run(story())


def test_a_missing_end_is_found_when_the_log_is_opened_and_its_offsets_are_not_given_again(tmp_path, caplog):
    async def story():
        good = await a_closed_log(tmp_path)
        change(tmp_path, "DELETE FROM batches WHERE offset>=29")
        with caplog.at_level(logging.ERROR):
            store = await Store.open(tmp_path)
        assert "topic a, offsets 29 to 36: the batches end before them" in caplog.text
        assert store.bounds("a") == (1, 36)
        assert store.append("a", *batch(0, 13, 1), 99.0) == 37
        assert await store.repair(good) == 1
        assert payloads(await everything(store, "a")) == [*payloads(good), b"m0.13"]
        await store.close()

    run(story())


@pytest.mark.parametrize("table", ["topics", "sources"])
def test_the_small_tables_are_checked_and_put_together_again(tmp_path, caplog, table):
    async def story():
        await a_closed_log(tmp_path)
        column = "last" if table == "topics" else "counter"
        change(tmp_path, f"UPDATE {table} SET {column}={column}+5")
        with caplog.at_level(logging.ERROR):
            store = await Store.open(tmp_path)
        assert f"of {table}" in caplog.text
        assert store.bounds("a") == (1, 36)
        assert store.cut("a") == {0: (0, 12), 1: (0, 12), 2: (0, 12)}
        await store.close()

    run(story())


def test_a_log_whose_database_is_gone_is_not_taken_for_a_new_one(tmp_path):
    async def story():
        await a_closed_log(tmp_path)
        (tmp_path / DATABASE).unlink()
        with pytest.raises(BadInput, match=r"log\.sqlite is missing or empty although log\.marks tells of it"):
            await Store.open(tmp_path)
        (tmp_path / DATABASE).touch()
        with pytest.raises(BadInput, match="missing or empty"):
            await Store.open(tmp_path)

    run(story())


def test_a_database_of_another_log_is_refused(tmp_path):
    async def story():
        await a_closed_log(tmp_path / "one")
        await a_closed_log(tmp_path / "two")
        (tmp_path / "one" / DATABASE).replace(tmp_path / "two" / DATABASE)
        with pytest.raises(BadInput, match=f"{MARKS} belongs to another log"):
            await Store.open(tmp_path / "two")

    run(story())


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 500])
def test_something_else_is_no_log(tmp_path, content):
    (tmp_path / DATABASE).write_bytes(content)
    with pytest.raises(BadInput, match=r"log\.sqlite cannot be opened as a log"):
        run(Store.open(tmp_path))
