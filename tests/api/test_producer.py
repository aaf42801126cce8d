"""Producers that number their messages: whatever is interrupted, each message is in every log once."""

import asyncio

import pytest

from cubecast import Node, connect
from cubecast.api.producer import Producer, publish_once
from cubecast.errors import BadInput, Closed, Fenced, OutcomeUnknown
from cubecast.log.index import HEADER
from support.running import run

COUNT = 300


def messages(start: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, stop)]


async def logged(address: str, topic: str = "t") -> list[bytes]:
    async with connect(address) as client:
        table = await client.read_log(topic).table()
    numbers = [dict(one)[HEADER] for one in table["headers"].to_pylist()]
    assert [int(one.rpartition("#")[2]) for one in numbers] == [int(one) + 1 for one in table["payload"].to_pylist()]
    return table["payload"].to_pylist()


def test_what_was_published_is_not_published_again(tmp_path):
    """By the same producer, by its successor, and after the node was closed and its index lost."""

    async def story():
        for life in range(2):
            async with Node(data=tmp_path, log=[">"], listen="127.0.0.1:0") as node:
                producer = Producer([node.address], "p", life)
                last = await producer.begin(["t", "u"])
                assert last == {"t": 100 * life, "u": 0}
                await producer.publish(("t", 1, messages(0, 100 * life + 50), None))
                await producer.flush()
                await publish_once(producer, ["t"], [("t", 1, messages(0, 100 * life + 100), None)], 30)
                await producer.close()
                assert await logged(node.address) == messages(0, 100 * life + 100)
            if life == 0:
                for file in tmp_path.glob("log.index*"):
                    file.unlink()

    run(story())


def test_numbers_may_not_be_left_out(tmp_path):
    async def story():
        async with Node(data=tmp_path, log=["t"], listen="127.0.0.1:0") as node:
            producer = Producer([node.address], "p", 1)
            with pytest.raises(BadInput, match="does not log other"):
                await producer.begin(["t", "other"])
            await producer.begin(["t"])
            with pytest.raises(BadInput, match="number 5 where 1 follows"):
                await producer.publish(("t", 5, messages(0, 3), None))
            await producer.close()

    run(story())


def test_a_successor_fences_the_one_before_at_every_node(tmp_path):
    """Two nodes, each with the producer's name once: the older one publishes nothing any more, wherever it is."""

    async def story():
        async with (
            Node(data=tmp_path / "a", log=[">"], listen="127.0.0.1:0") as one,
            Node(data=tmp_path / "b", log=[">"], listen="127.0.0.1:0", join=[one.address]) as two,
        ):
            old, new = Producer([one.address], "p", 1), Producer([two.address], "p", 2)
            await publish_once(old, ["t"], [("t", 1, messages(0, 10), None)], 30)
            assert await new.begin(["t"]) == {"t": 10}
            with pytest.raises((OutcomeUnknown, Closed)):
                await old.publish(("t", 11, messages(10, 20), None))
                await old.flush()
            with pytest.raises(Fenced, match="epoch 2 already"):
                await old.begin(["t"])
            await publish_once(new, ["t"], [("t", 1, messages(0, 30), None)], 30)
            for node in (one, two):
                assert await logged(node.address) == messages(0, 30)
            await old.close()
            await new.close()

    run(story())


@pytest.mark.parametrize("kept", [0, 7, COUNT - 1])
def test_a_lost_node_loses_and_repeats_nothing(tmp_path, kept):
    """The producer's node goes away in the middle; another one goes on with what it has."""

    async def story():
        one = Node(data=tmp_path / "a", log=[">"], listen="127.0.0.1:0")
        await one.start()
        async with Node(data=tmp_path / "b", log=[">"], listen="127.0.0.1:0", join=[one.address]) as two:
            producer = Producer([one.address, two.address], "p", 1)
            await producer.begin(["t"])
            await producer.publish(("t", 1, messages(0, kept), None))
            leaving = asyncio.ensure_future(one.close())
            await publish_once(producer, ["t"], [("t", 1, messages(0, COUNT), None)], 60)
            await leaving
            assert await logged(two.address) == messages(0, COUNT)
            await producer.close()

    run(story())
