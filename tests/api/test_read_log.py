"""Ranges of a node's log as Arrow batches, in the node's process and through connections."""

import asyncio
import subprocess
import sys

import pytest

from cubecast import connect, sync
from cubecast.addresses import Address
from cubecast.errors import BadInput, CubecastError, DamagedLog, Forgotten, NotKept, OutcomeUnknown
from cubecast.log.segments import segment_path
from cubecast.net.gateway.gateway import Gateway
from cubecast.net.gateway.messages import ReadLog, encode
from cubecast.net.port import ranges
from cubecast.net.settings.fields import MAX_FRAME
from support.cluster import cluster
from support.logs import flip
from support.running import run, until


def a_keeper(tmp_path, **options):
    return cluster(1, data=tmp_path, log=(">",), **options)


@pytest.fixture(params=["node", "thin"])
def opened(request):
    """Turns a node into a client of it."""

    async def client(node):
        return node if request.param == "node" else await connect(node.address)

    return client


def test_a_range_holds_what_was_published(tmp_path, opened):
    async def main():
        async with a_keeper(tmp_path) as (node,):
            client = await opened(node)
            await node.publish("t", b"plain", wait="stable")
            await node.publish("t", "text", headers={"by": "ann", "to": "bob"}, wait="stable")
            await node.publish("t", {"n": 1}, wait="stable")
            await node.publish_batch("u.v", [b"%d" % number for number in range(100)], wait="stable")
            assert [one[:3] for one in await client.log_topics()] == [("t", 1, 3), ("u.v", 1, 100)]
            table = await client.read_log("t").table()
            assert table.schema.names == [
                *("topic", "offset", "time", "source", "incarnation", "counter", "payload", "headers")
            ]
            rows = table.to_pylist()
            assert [row["payload"] for row in rows] == [b"plain", b"text", b'{"n":1}']
            assert [row["headers"] for row in rows] == [None, [("by", "ann"), ("to", "bob")], None]
            assert [(row["topic"], row["offset"], row["counter"]) for row in rows] == [("t", n, n) for n in (1, 2, 3)]
            assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
            part = await client.read_log("u.v", 11, 21).table()
            assert part["payload"].to_pylist() == [b"%d" % number for number in range(10, 20)]
            assert (await client.read_log("u.v", 5, 5).table()).num_rows == 0
            assert (await client.read_log("never").table()).num_rows == 0
            await client.close()

    run(main())


def test_long_ranges_come_in_pieces_that_fit_a_frame(tmp_path, opened):
    async def main():
        async with a_keeper(tmp_path) as (node,):
            client = await opened(node)
            await node.publish_batch("t", [bytes(1000)] * 3000, wait="stable")
            await node.publish("t", bytes(1 << 20), wait="stable")
            batches = [batch async for batch in client.read_log("t")]
            assert len(batches) > 4
            assert all(batch.nbytes <= MAX_FRAME for batch in batches)
            offsets = [offset for batch in batches for offset in batch.column("offset").to_pylist()]
            assert offsets == list(range(1, 3002))
            await client.close()

    run(main())


def test_what_cannot_be_read_is_an_error_and_no_silence(tmp_path, opened):
    async def main():
        async with cluster(1) as (bare,):
            with pytest.raises(NotKept, match="keeps no log"):
                await (await opened(bare)).read_log("t").table()
        async with a_keeper(tmp_path) as (node,):
            for number in range(4):
                await node.publish_batch("t", [b"here %d" % number] * 10, wait="durable")
        segment = segment_path(tmp_path, 1)
        flip(segment, segment.read_bytes().index(b"here 2"))
        async with a_keeper(tmp_path, patience=0.5) as (node,):  # there is nobody else to wait for
            client = await opened(node)
            with pytest.raises(DamagedLog, match="offsets 21 to 30"):
                await client.read_log("t").table()
            assert (await client.read_log("t", 31).table()).num_rows == 10
            with pytest.raises(BadInput, match="ends with offset 40"):
                await client.read_log("t", 1, 100).table()
            with pytest.raises(Forgotten, match="not kept any more"):
                await client.read_log("t", 0).table()
            with pytest.raises(BadInput):
                client.read_log("t.*")
            await client.close()

    run(main())


def test_many_topics_are_listed_in_several_answers(tmp_path, opened, monkeypatch):
    monkeypatch.setattr(ranges, "TOPICS_AT_ONCE", 7)

    async def main():
        async with a_keeper(tmp_path) as (node,):
            client = await opened(node)
            for number in range(20):
                await node.publish(f"t.{number}", b"x", wait="stable")
            assert [one.topic for one in await client.log_topics()] == sorted(f"t.{number}" for number in range(20))
            await client.close()

    run(main())


def test_reading_ends_with_its_node(tmp_path):
    async def main():
        async with cluster(1) as (other,):
            async with a_keeper(tmp_path) as (node,):
                await node.publish_batch("t", [bytes(1000)] * 3000, wait="stable")
                client = await connect(node.address)
                client._port._dialler._named.append(Address.parse(other.address))
                reading = aiter(client.read_log("t"))
                await anext(reading)
            with pytest.raises((OutcomeUnknown, NotKept)):
                while True:
                    await anext(reading)
            await client.close()

    run(main())


def test_without_an_event_loop(tmp_path):
    async def main():
        async with a_keeper(tmp_path) as (node,):
            await node.publish_batch("t", [b"x"] * 100, wait="stable")

            def read():
                with sync.connect(node.address) as client:
                    return client.log_topics()[0][:3], client.read_log("t", 41, timeout=30).num_rows

            assert await asyncio.to_thread(read) == (("t", 1, 100), 60)

    run(main())


class Link:
    label, is_full = "a test", False

    def __init__(self):
        self.sent = []

    def send(self, frame):
        self.sent.append(frame)

    def abort(self, reason): ...


def test_a_client_that_asks_for_too_much_at_once_is_refused(tmp_path):
    async def main():
        async with a_keeper(tmp_path) as (node,):
            await node.publish("t", b"x", wait="stable")
            link = Link()
            gateway = Gateway(node._live.port, link)
            with pytest.raises(CubecastError, match="at once"):
                gateway.on_frames([encode(ReadLog(number, "t", None, None)) for number in range(9)])
            await until(lambda: len(link.sent) == 4)
            gateway.close()

    run(main())


@pytest.mark.interpreted
def test_a_mistake_of_the_node_is_an_answer_too(tmp_path, monkeypatch, caplog):
    async def main():
        async with a_keeper(tmp_path) as (node,):
            monkeypatch.setattr(node._live.port, "log_topics", broken)
            async with await connect(node.address) as client:
                with pytest.raises(CubecastError, match="failed to read its log"):
                    await client.log_topics()

    async def broken(after):
        raise KeyError(after)

    run(main())
    assert "KeyError" in caplog.text


SERVING = """
import sys
sys.modules["pyarrow"] = sys.modules["numpy"] = None  # importing them fails from now on
from pathlib import Path
from cubecast import Node, connect
from cubecast.net.links.loop import run

async def main(data):
    async with Node(data=data, log=(">",)) as node:
        await node.publish_batch("t", [b"x"] * 100, wait="stable")
        async with await connect(node.address) as client:
            piece = await client._port.read_log("t", 11, None)
            print(sum(len(batch.sealed) for batch in piece.batches))

run(main(Path(sys.argv[1])))
"""


def test_a_node_serves_ranges_without_a_library_for_tables(tmp_path):
    """The first reader made its node stand still for most of a second, while the library was imported."""
    command = [sys.executable, "-c", SERVING, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("90\n", 0), done.stderr
