"""Thin clients on loopback, through the real gateway, to an imaginary cluster."""

import asyncio

import pytest

from cubecast.addresses import Address
from cubecast.api.client import Client
from cubecast.api.message import Gap
from cubecast.errors import BadInput, Closed, OutcomeUnknown, Unreachable
from cubecast.net.gateway import gateway
from cubecast.net.gateway.client import ClientPort
from cubecast.net.gateway.messages import Publish, encode
from cubecast.net.links.connection import Connection
from support.bus import LARGEST, Bus
from support.gateways import Door
from support.running import run, until


async def opened(count: int = 1, **options) -> list[Door]:
    bus = Bus()
    doors = [Door(bus, **options) for _ in range(count)]
    for door in doors:
        await door.open()
    for door in doors:
        door.others = [other for other in doors if other is not door]
    return doors


async def connected(*doors: Door, **options) -> Client:
    port = ClientPort([door.address for door in doors], **options)
    await port.start()
    return Client(port)


def test_a_client_publishes_and_hears_through_different_nodes():
    async def main():
        doors = await opened(2)
        ann, bob = await connected(doors[0]), await connected(doors[1])
        async with bob.subscribe("chat.*") as heard:
            await ann.publish("chat.a", "hello", headers={"by": "ann"}, wait="stable")
            await ann.publish_batch("chat.b", [b"%d" % number for number in range(2000)])
            first = await heard.next(30)
            assert (first.topic, first.data, first.headers) == ("chat.a", "hello", {"by": "ann"})
            rest = [await heard.next(30) for _ in range(2000)]
            assert [message.data for message in rest] == [b"%d" % number for number in range(2000)]
            assert [message.counter for message in rest] == list(range(1, 2001))
        assert (await ann.status())["node"] == 0
        await ann.close()
        await bob.close()
        await until(lambda: not len(doors[0].clients) and not len(doors[1].clients))
        assert not doors[1].port.wires

    run(main())


def test_a_client_moves_when_its_node_dies_and_says_what_it_does_not_know():
    async def main():
        doors = await opened(2)
        uncertain = []
        ann = await connected(doors[0], on_uncertain=uncertain.append)
        watcher = Client(doors[1].port)
        async with ann.subscribe("t") as heard, watcher.subscribe("t", gaps="ignore") as seen:
            await watcher.publish("t", 1)
            assert (await heard.next(30)).data == 1
            doors[0].port.open_room.clear()
            await ann.publish("t", "in the node's backlog")
            await until(lambda: ann._port._publications._outbox._under_way)
            doors[0].kill()
            await until(lambda: ann._port._connection is None)
            await ann.publish("t", "kept")
            gap = await heard.next(30)
            assert isinstance(gap, Gap) and "moved from node 0" in gap.reason
            assert [one.messages for one in uncertain] == [1]
            assert [(await seen.next(30)).data for _ in range(2)] == [1, "kept"]
            while not isinstance(event := await heard.next(30), Gap):
                assert event.data == "kept"
            assert "all arrives" in event.reason
            await watcher.publish("t", 2)
            assert (await heard.next(30)).data == 2
        await ann.close()

    run(main())


def test_waiting_for_stability_across_the_loss_of_the_node_is_unknown():
    async def main():
        doors = await opened(2)
        ann = await connected(doors[0])
        doors[0].port.settled.clear()
        waiting = asyncio.create_task(ann.publish("t", 1, wait="stable"))
        await until(lambda: doors[0].port._counters)
        doors[0].kill()
        with pytest.raises(OutcomeUnknown):
            await waiting
        await ann.publish("t", 2, wait="stable")
        await ann.close()

    run(main())


def test_when_no_node_is_left_everything_ends_with_an_error():
    async def main():
        (door,) = await opened()
        ann = await connected(door, patience=0.2)
        heard = ann.subscribe("t")
        await heard.ready()
        status = asyncio.create_task(ann.status())
        door.kill()
        with pytest.raises(OutcomeUnknown, match="no other node takes this client"):
            await heard.next(30)
        with pytest.raises(Closed, match="no other node takes this client"):
            await ann.publish("t", 1)
        await asyncio.gather(status, return_exceptions=True)
        await ann.close()

    run(main())


def test_a_silent_node_is_given_up_but_not_by_a_client_that_stood_still_itself():
    async def main():
        (door,) = await opened()
        ann = await connected(door, patience=0.0)
        port, loop = ann._port, asyncio.get_running_loop()
        port._last_word = loop.time() - 100.0
        port._beat(loop.time() - 90.0)
        assert (await ann.status())["node"] == 0, "the connection goes on"
        port._last_word = loop.time() - 100.0
        port._beat(loop.time())
        await until(lambda: port._connection is None)
        await ann.close()

    run(main())


def test_a_blocked_node_holds_its_clients_back_and_loses_nothing():
    async def main():
        (door,) = await opened()
        ann = await connected(door)
        door.port.open_room.clear()
        publishing = asyncio.create_task(ann.publish_batch("t", [bytes(50_000)] * 200))
        await until(lambda: not ann._port.has_room("t"))
        await asyncio.sleep(0)
        assert not publishing.done()
        assert not door.port._counters
        door.port.open_room.set()
        await publishing
        await ann.publish("t", 1, wait="stable")
        assert door.port._counters == {"t": 201}
        await ann.close()

    run(main())


def test_closing_drains_what_was_published():
    async def main():
        (door,) = await opened()
        ann = await connected(door)
        for number in range(3000):
            await ann.publish("t", number)
        await ann.close()
        assert door.port._counters == {"t": 3000}
        with pytest.raises(Closed):
            await ann.publish("t", 1)

    run(main())


def test_slow_readers_pause_the_node_through_the_connection():
    async def main():
        (door,) = await opened()
        ann, bob = await connected(door), await connected(door)
        async with bob.subscribe("t", gaps="ignore", budget=2000, patience=60) as heard:
            await ann.publish_batch("t", [b"%d" % number for number in range(100)], wait="stable")
            await until(lambda: ("pause", 1) in door.port.calls)
            await ann.publish_batch("t", [b"%d" % number for number in range(100, 200)], wait="stable")
            assert [int((await heard.next(30)).data) for _ in range(200)] == list(range(200))
            assert ("resume", 1) in door.port.calls
        await asyncio.gather(ann.close(), bob.close())

    run(main())


def test_a_client_that_does_not_read_is_held_back_and_then_cut_off(monkeypatch):
    async def main():
        monkeypatch.setattr(gateway.Gateway.__init__, "__kwdefaults__", {"full_for": 0.05, "silent_for": 30.0})
        (door,) = await opened()
        bob = await connected(door)
        heard = bob.subscribe("t")
        await heard.ready()
        bob._port._connection.pause_reading()
        writer = Client(door.port)
        for _ in range(400):
            await writer.publish("t", bytes(60_000))
            await asyncio.sleep(0)
        assert ("pause", 1) in door.port.calls
        await until(lambda: not len(door.clients))
        assert not door.port.wires

    run(main())


@pytest.mark.parametrize("frame", [b"\xc1", b"", encode(Publish(1, "t", [])), b"\x93\x05\x01\xa1t"])
def test_garbage_ends_that_connection_only(frame):
    async def main():
        (door,) = await opened()
        ann, bob = await connected(door), await connected(door)
        async with ann.subscribe("t") as heard:
            bob._port._connection.send(frame)
            await until(lambda: bob._port._connection is None)
            await ann.publish("t", 1)
            assert (await heard.next(30)).data == 1
        await ann.close()

    run(main())


def test_bad_input_is_refused_with_the_reason():
    async def main():
        (door,) = await opened()
        ann = await connected(door)
        with pytest.raises(BadInput, match=str(LARGEST)):
            await ann.publish("t", bytes(LARGEST + 1))
        with pytest.raises(BadInput, match="does not belong to cluster"):
            await connected(door, cluster="elsewhere")
        with pytest.raises(BadInput, match="at least one node"):
            await connected()
        port = ClientPort([Address("127.0.0.1", 1)])
        with pytest.raises(
            Unreachable, match=r"127\.0\.0\.1:1: .*running there\? cubecast node --listen 127\.0\.0\.1:1"
        ):
            await port.start(timeout=0.1)
        port = ClientPort([Address("no..host", 1)])
        with pytest.raises(Unreachable, match="is no host"):
            await port.start(timeout=0.1)
        more = [await connected(door) for _ in range(3)]
        with pytest.raises(BadInput, match="serves 4 clients"):
            extra = ClientPort([door.address])
            await extra.start(timeout=0.1)
        await asyncio.gather(*(client.close() for client in [ann, *more]))

    run(main())


def test_who_published_nothing_waits_for_nothing():
    async def main():
        (door,) = await opened()
        ann = await connected(door)
        await ann.stable("t", timeout=30)
        await ann.close()

    run(main())


def test_who_published_nothing_on_a_topic_waits_for_nothing_there():
    async def main():
        doors = await opened(2)
        ann = await connected(doors[0])
        await ann.publish("t", 1, wait="stable", timeout=30)
        await ann.stable("other", timeout=30)
        doors[0].kill()
        await until(lambda: len(doors[1].clients))
        await ann.stable("other", timeout=30)
        with pytest.raises(OutcomeUnknown):
            await ann.stable("t", timeout=30)
        await ann.close()

    run(main())


def test_what_two_nodes_deliver_comes_once():
    async def main():
        doors = await opened(2)
        ann = await connected(doors[0])
        async with ann.subscribe("t", gaps="ignore") as heard:
            await Client(doors[1].port).publish_batch("t", range(5))
            assert [(await heard.next(30)).data for _ in range(5)] == list(range(5))
            doors[0].kill()
            await until(lambda: doors[1].port.wires)
            (wire,) = doors[1].port.wires.values()
            again = [b"\xc1\x02%d" % number for number in range(8)]
            wire.sink.on_batch("t", (1, 0, 1), again)
            assert [(await heard.next(30)).data for _ in range(3)] == [5, 6, 7]
        await ann.close()

    run(main())


def test_connections_hand_over_what_came_early():
    async def main():
        got: list[bytes] = []
        ignored = {"on_open": lambda _: None, "on_frames": lambda *_: None, "on_lost": lambda *_: None}
        connection = Connection(**ignored)
        connection.early = [b"a", b"b"]
        connection.take_over(lambda _, frames: got.extend(frames), lambda *_: None)
        assert got == [b"a", b"b"] and not connection.early

    run(main())
