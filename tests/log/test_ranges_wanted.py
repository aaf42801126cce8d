"""What of a range a reader wants: columns, and messages between two cuts; the node leaves the rest out."""

import random
import threading

import pytest

from cubecast import Node, connect
from cubecast.errors import BadInput
from cubecast.ids import MessageId
from cubecast.log.history import History
from cubecast.log.record import pack
from cubecast.log.store import Store
from cubecast.net.port import ranges
from cubecast.net.port.ranges import PIECE, Wanted, decode_piece, read_piece
from support.running import run

COLUMNS = ("offset", "time", "source", "incarnation", "counter")


async def read(history, start, stop, wanted):
    rows, pieces = [], 0
    while True:
        piece = decode_piece(await read_piece(history, "t", start, stop, wanted))
        pieces += 1
        for batch in piece.batches:
            for number, sealed in enumerate(batch.sealed):
                rows.append((batch.offset + number, (batch.source, batch.incarnation, batch.counter + number), sealed))
        start, stop = piece.following, piece.stop
        if start >= stop:
            return rows, pieces


@pytest.mark.parametrize("seed", range(8))
def test_cuts_and_columns_select_what_they_say(tmp_path, seed):
    """Any cuts, from memory and from the disk, against a list of everything."""
    draw = random.Random(seed)

    async def story():
        store = await Store.open(tmp_path)
        history = History(store, recent=draw.choice((0, 2000, 2 << 20)))
        newest, everything = {}, []
        for _ in range(draw.randrange(1, 120)):
            source = draw.randrange(4)
            life, counter = newest.get(source, (0, 0))
            if draw.random() < 0.05:
                life, counter = life + 1, 0
            payloads = [draw.randbytes(draw.choice((0, 3, 40, 9000))) for _ in range(draw.randrange(1, 40))]
            history.append("t", MessageId(source, life, counter + 1), pack(payloads))
            newest[source] = life, counter + len(payloads)
            for number, payload in enumerate(payloads, 1):
                everything.append((len(everything) + 1, (source, life, counter + number), payload))
        if draw.random() < 0.7:
            await store.synced(store.ticket)
        for _ in range(20):
            start = draw.randrange(1, len(everything) + 1)
            stop = draw.randrange(start, len(everything) + 2)
            places = [[(s, life, draw.randrange(counter + 2)) for s, (life, counter) in newest.items()] for _ in "ab"]
            upto = draw.choice((None, places[1][: draw.randrange(5)]))
            wanted = Wanted(places[0][: draw.randrange(5)], upto, draw.random() < 0.7)
            low = {place[0]: place[1:] for place in wanted.behind}
            high = None if upto is None else {place[0]: place[1:] for place in upto}
            expected = [
                (offset, name, payload if wanted.content else b"")
                for offset, name, payload in everything[start - 1 : stop - 1]
                if name[1:] > low.get(name[0], (-1, 0)) and (high is None or name[1:] <= high.get(name[0], (-1, 0)))
            ]
            assert (await read(history, start, stop, wanted))[0] == expected, f"seed {seed}: {start} {stop} {wanted}"
        await store.close()

    run(story())


def test_a_reader_says_which_columns_and_which_messages(tmp_path):
    async def story():
        async with Node(data=tmp_path, log=[">"], listen="127.0.0.1:0") as node:
            await node.publish_batch("t", [b"%d" % number for number in range(100)], wait="durable")
            async with await connect(node.address) as client:
                for reader in (node, client):
                    names = await reader.read_log("t", columns=COLUMNS).table()
                    assert names.column_names == list(COLUMNS)
                    assert names["offset"].to_pylist() == list(range(1, 101))
                    behind, upto = await reader.log_cut("t", 30), await reader.log_cut("t", 60)
                    some = await reader.read_log("t", columns=["payload"], behind=behind, upto=upto).table()
                    assert some["payload"].to_pylist() == [b"%d" % number for number in range(30, 60)]
                    assert await reader.log_reach("t", upto) == 61
                    assert await reader.log_reach("t", {}) == 1
                    with pytest.raises(BadInput, match="no column 'body'; it has topic, offset"):
                        reader.read_log("t", columns=["body"])

    run(story())


def test_pieces_are_made_outside_of_the_event_loop(tmp_path, monkeypatch):
    """From the disk and from memory; batches of one message each, which take the longest per byte."""
    threads, pack_piece = set(), ranges._pack

    def watched(*arguments):
        threads.add(threading.current_thread())
        return pack_piece(*arguments)

    monkeypatch.setattr(ranges, "_pack", watched)

    async def story(recent):
        store = await Store.open(tmp_path / str(recent))
        history = History(store, recent=recent)
        for number in range(2_000):
            history.append("t", MessageId(0, 0, number + 1), pack([b"x" * 500]))
        await store.synced(store.ticket)
        rows, pieces = await read(history, 1, 2_001, Wanted())
        assert len(rows) == 2_000
        assert pieces >= 2_000 * 500 // PIECE
        await store.close()

    run(story(0))
    run(story(8 << 20))
    assert threads
    assert threading.main_thread() not in threads
