"""A node that was away, by choice or not, has what it missed when it is back."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from cubecast.api.message import Gap
from cubecast.api.node import Node
from cubecast.errors import OutcomeUnknown
from cubecast.ids import MessageId
from cubecast.log.segments import segment_path
from cubecast.net.node.durable.refill import Holding
from support.cluster import FAST, cluster
from support.logs import flip
from support.running import run, until


def keeper(directory, *others, **options):
    join = [other.address for other in others]
    return Node(join=join, data=directory, **FAST | {"log": (">",)} | options)


async def say(node, first, count, topic="t"):
    await node.publish_batch(topic, [b"%d" % number for number in range(first, first + count)], wait="stable")


async def heard(node, count, pattern="t"):
    """What is in the log: numbers, and gaps."""
    subscription = node.subscribe(pattern, since="beginning")
    got = []
    while sum(not isinstance(one, Gap) for one in got) < count:
        got += [one if isinstance(one, Gap) else int(one.data) for one in await subscription.take(1000, 30)]
    await subscription.live()
    subscription.close()
    return got


def test_what_was_missed_comes_from_a_peers_log_and_what_comes_meanwhile_follows(tmp_path):
    async def main():
        async with cluster(2) as (one, other), keeper(tmp_path / "a", one):
            async with keeper(tmp_path / "b", one, node=6) as away:
                await say(one, 0, 100)
                assert await heard(away, 100) == list(range(100))
            await say(one, 100, 1000)
            await say(other, 0, 300, "u")
            talking = asyncio.create_task(talk(one, 1100))
            async with keeper(tmp_path / "b", one, node=6) as back:
                await until(lambda: back._live.port.recorder.store.bounds("t")[1] > 1100)
                talking.cancel()
                await asyncio.gather(talking, return_exceptions=True)
                await one.stable("t")
                last = one._live.port.publishing.outgoing["t"].accepted
                assert await heard(back, last) == list(range(last))
                assert await heard(back, 300, "u") == list(range(300))

    run(main())


def test_a_member_whose_log_is_empty_has_what_the_logs_of_the_others_have(tmp_path):
    """Also of a peer that keeps other topics besides, or fewer; what nobody logged is not there."""

    async def main():
        async with cluster(1) as (one,), keeper(tmp_path / "a", one), keeper(tmp_path / "b", one, log=("t", "w")):
            await say(one, 0, 100)
            await say(one, 0, 10, "u.v")
            async with (
                keeper(tmp_path / "c", one) as new,
                keeper(tmp_path / "d", one, log=("t", "u.*")) as narrow,
            ):
                for member in (new, narrow):
                    assert await heard(member, 100) == list(range(100))
                    assert await heard(member, 10, "u.v") == list(range(10))

    run(main())


def test_a_log_that_comes_later_fills_those_that_could_not_ask_it(tmp_path):
    async def main():
        async with cluster(1) as (one,):
            async with keeper(tmp_path / "a", one, node=6):
                await say(one, 0, 50)
            async with keeper(tmp_path / "b", one, node=5) as empty:
                assert await heard(empty, 0) == []
                follower = empty.subscribe("t", since="beginning")
                async with keeper(tmp_path / "a", one, node=6):
                    await until(lambda: empty._live.port.recorder.store.bounds("t")[1] == 50)
                    assert [int((await follower.next(30)).data) for _ in range(50)] == list(range(50))

    run(main())


async def talk(node, number):
    while True:
        await node.publish("t", b"%d" % number, wait="stable")
        number += 1


def test_what_no_peer_has_is_a_gap_in_its_place(tmp_path):
    async def main():
        async with cluster(2) as (one, _):
            async with keeper(tmp_path, one, node=6) as away:
                await say(one, 0, 10)
                assert await heard(away, 10) == list(range(10))
            await say(one, 10, 10)
            async with keeper(tmp_path, one, node=6) as back:
                await say(one, 20, 10)
                got = await heard(back, 20)
                (gap,) = [event for event in got if isinstance(event, Gap)]
                assert got == [*range(10), gap, *range(20, 30)]
                assert gap.count == 10 and [(run.first, run.last) for run in gap.missing] == [(11, 20)]

    run(main())


@asynccontextmanager
async def deaf_and_dumb(node):
    """It neither hears nor is heard; it goes on all the same."""
    live = node._live
    packets, send = live.life.packets, live.life.driver._send
    live.life.packets, live.life.driver._send = (lambda *_: None), (lambda *_: None)
    try:
        yield
    finally:
        live.life.packets, live.life.driver._send = packets, send


@pytest.mark.parametrize("has_peer", [True, False], ids=["a peer has it", "nobody has it"])
def test_a_node_that_was_held_faulty_tells_of_a_gap_only_when_no_peer_can_fill_it(tmp_path, has_peer):
    async def main():
        soon = {"patience": 2.0, "round_length": 0.5}  # a round that comes later than that suspects nobody
        async with cluster(2, **soon) as (one, other), AsyncExitStack() as stack:
            if has_peer:
                await stack.enter_async_context(keeper(tmp_path / "a", one, **soon))
            dropped = await stack.enter_async_context(keeper(tmp_path / "b", one, **soon))
            before = dropped._live.place.incarnation
            async with dropped.subscribe("t") as subscription:
                await say(one, 0, 10)
                assert [int((await subscription.next(30)).data) for _ in range(10)] == list(range(10))
                async with deaf_and_dumb(dropped):
                    # Both must know: who publishes to it all the same would send it what it is to miss.
                    await until(lambda: all(dropped.id not in node._live.machine.living for node in (one, other)))
                    await say(one, 10, 10)
                await until(lambda: dropped._live.place.incarnation > before)
                await until(lambda: dropped._live.machine.is_active)
                await until(lambda: not dropped._live.port.recorder.catch_up.is_filling)
                await say(one, 20, 10)
                got = []
                while 29 not in got:
                    event = await subscription.next(30)
                    got.append(event if isinstance(event, Gap) else int(event.data))
            numbers = [one for one in got if not isinstance(one, Gap)]
            assert numbers == list(range(10, 30) if has_peer else range(20, 30))
            assert bool(len(got) - len(numbers)) is not has_peer

    run(main())


def test_who_waits_for_the_disk_when_its_node_comes_back_is_answered(tmp_path):
    async def main():
        async with Node(data=tmp_path, log=(">",), **FAST) as node:
            port = node._live.port
            await node.publish("t", 0, wait="durable")
            port.recorder.catch_up.hold()  # as while a log is filled: nothing is recorded
            waiting = asyncio.create_task(node.publish("t", 1, wait="durable"))
            await until(lambda: port.publishing.outgoing["t"].published == 2)
            port.on_reincarnated(1)
            with pytest.raises(OutcomeUnknown, match="not known whether"):
                await waiting
            with pytest.raises(OutcomeUnknown, match="not known whether"):
                await port.durable("t", 2)

    run(main())


def flipped(directory, text):
    """One bit of the messages, in this text."""
    segment = segment_path(directory, 1)
    flip(segment, segment.read_bytes().index(text))


def test_what_is_damaged_is_had_from_a_peer_when_the_node_starts(tmp_path):
    async def main():
        async with cluster(1) as (one,), keeper(tmp_path / "a", one):
            async with keeper(tmp_path / "b", one, node=6):
                for number in range(5):
                    await say(one, 100 * number, 100)
            flipped(tmp_path / "b", b"%d" % 250)
            async with keeper(tmp_path / "b", one, node=6) as back:
                assert await heard(back, 500) == list(range(500))

    run(main())


def test_damage_nobody_can_mend_is_a_gap_and_the_rest_is_read(tmp_path):
    async def main():
        async with cluster(1) as (one,):
            async with keeper(tmp_path, one, node=6):
                for number in range(5):
                    await say(one, 100 * number, 100)
            flipped(tmp_path, b"%d" % 250)
            async with keeper(tmp_path, one, node=6) as back:
                got = await heard(back, 400)
                (gap,) = [event for event in got if isinstance(event, Gap)]
                assert got == [*range(200), gap, *range(300, 500)] and gap.offsets == (201, 300)

    run(main())


def test_what_is_held_beyond_the_budget_is_on_disk_and_keeps_its_order(tmp_path):
    held = Holding(tmp_path, budget=2000)
    got = []
    for number in range(200):
        held.put("t", MessageId(0, 0, number + 1), [b"%d" % number] * 2)
        if number % 3 == 0:
            got.append(held.get())
    while (item := held.get()) is not None:
        got.append(item)
    held.put("t", MessageId(0, 0, 201), [b"200"])
    got.append(held.get())
    assert [int(one.payloads[0]) for one in got] == list(range(201))
    assert held.firsts == {("t", 0, 0): 1} and held.get() is None
