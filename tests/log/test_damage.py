"""What was written and is not what it was: found, named, never passed over, and put right."""

import logging
import sqlite3

import pytest

from cubecast.errors import BadInput, DamagedLog
from cubecast.ids import MessageId
from cubecast.log.record import Record, Run
from cubecast.log.schema import DATABASE, MARKS
from cubecast.log.segments import segment_path
from cubecast.log.store import Store
from support.logs import batch, everything, fill, flip, payloads
from support.running import run


def change(directory, statement, *values):
    """Behind the log's back."""
    database = sqlite3.connect(directory / DATABASE)
    with database:
        database.execute(statement, values)
    database.close()


def zero(directory, offset):
    """What a disk may make of the messages at an offset."""
    database = sqlite3.connect(directory / DATABASE)
    query = "SELECT file, start, length FROM batches WHERE offset=?"
    file, start, length = database.execute(query, (offset,)).fetchone()
    database.close()
    with segment_path(directory, file).open("r+b") as segment:
        segment.seek(start)
        segment.write(bytes(length))


async def a_closed_log(directory, batches=9):
    store = await Store.open(directory)
    await fill(store, "a", batches)
    good = await everything(store, "a")
    await store.close()
    return good


def test_a_flipped_bit_in_a_message_is_named_and_never_handed_out(tmp_path):
    async def story():
        good = await a_closed_log(tmp_path)
        segment = segment_path(tmp_path, 1)
        flip(segment, segment.read_bytes().index(b"m1.5"))
        store = await Store.open(tmp_path)
        assert await store.read("a", 1, 1 << 20) == good[:4], "what comes before it is good"
        with pytest.raises(DamagedLog, match=r"1\.segment: topic a, offsets 17 to 20: the frame at \d+: its messages"):
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
        zero(tmp_path, 17)
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


@pytest.mark.parametrize("column", ["count", "source", "incarnation", "counter", "file", "start", "length"])
def test_an_index_that_says_something_else_than_the_segment_is_not_believed(tmp_path, column):
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
        with segment_path(tmp_path, 1).open("r+b") as segment:
            segment.truncate(segment.seek(0, 2) - 100)
        with caplog.at_level(logging.ERROR):
            store = await Store.open(tmp_path)
        assert "topic a, offsets 29 to 36: they were at" in caplog.text
        assert store.bounds("a") == (1, 36)
        assert store.append("a", *batch(0, 13, 1), 99.0) == 37
        assert await store.repair(good) == 1
        assert payloads(await everything(store, "a")) == [*payloads(good), b"m0.13"]
        await store.close()
        again = await Store.open(tmp_path)
        assert payloads(await everything(again, "a")) == [*payloads(good), b"m0.13"]
        await again.close()

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


def test_a_log_whose_segments_and_index_are_gone_is_not_taken_for_a_new_one(tmp_path):
    """With the index it is a damaged log; without, nobody knows which offsets were given."""

    async def story():
        await a_closed_log(tmp_path)
        segment_path(tmp_path, 1).unlink()
        store = await Store.open(tmp_path)
        assert [damage[:2] for damage in store.damaged("a")] == [(1, 36)] and store.bounds("a") == (1, 36)
        await store.close()
        for path in tmp_path.glob("log.*"):
            if path.name != MARKS:
                path.unlink()
        with pytest.raises(BadInput, match=r"\.segment is missing although log\.marks tells of it"):
            await Store.open(tmp_path)

    run(story())


@pytest.mark.parametrize(
    "content",
    [None, b"", b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 500],
    ids=["gone", "empty", "something else", "damaged"],
)
def test_an_index_that_is_gone_or_useless_is_made_again_from_the_segments(tmp_path, content, caplog):
    async def story():
        good = await a_closed_log(tmp_path)
        store = await Store.open(tmp_path)
        zero(tmp_path, 17)
        with pytest.raises(DamagedLog):
            await store.read("a", 17, 1)
        longer = Record("a", MessageId(1, 0, 5), [b"m1.5", b"m1.6", b"m1.7", b"m1.8"], 1, 0.0)
        assert await store.repair([longer]) == 1
        await store.close()
        (tmp_path / DATABASE).unlink()
        if content is not None:
            (tmp_path / DATABASE).write_bytes(content)
        store = await Store.open(tmp_path)
        assert payloads(await everything(store, "a")) == payloads(good)
        assert store.cut("a") == {0: (0, 12), 1: (0, 12), 2: (0, 12)}
        assert store.append("a", *batch(0, 13, 1), 99.0) == 37
        await store.close()

    run(story())
    assert content in (None, b"") or "made again from the segments" in caplog.text


def test_frames_the_index_does_not_know_are_entered_and_an_unfinished_one_is_cut_off(tmp_path, caplog):
    async def story():
        store = await Store.open(tmp_path)
        await fill(store, "a", 3)
        await store.close()
        before = (tmp_path / DATABASE).read_bytes()
        good = await a_closed_log_more(tmp_path)
        (tmp_path / DATABASE).write_bytes(before)
        (tmp_path / MARKS).unlink()
        with segment_path(tmp_path, 1).open("ab") as segment:
            segment.write(b"\xc1LOG" + bytes(30))
        store = await Store.open(tmp_path)
        assert payloads(await everything(store, "a")) == payloads(good)
        assert store.append("b", *batch(0, 1, 1), 99.0) == 1
        await store.close()
        store = await Store.open(tmp_path)
        assert payloads(await everything(store, "b")) == [b"m0.1"]
        await store.close()

    run(story())
    assert "bytes from" in caplog.text
    assert "are not whole frames" in caplog.text


async def a_closed_log_more(directory):
    store = await Store.open(directory)
    for counter in range(5, 25, 4):
        store.append("a", *batch(0, counter, 4), 50.0)
    await store.synced(store.ticket)
    good = await everything(store, "a")
    await store.close()
    return good
