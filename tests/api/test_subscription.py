"""Reading: order, cancellation, budgets and what happens to the slow."""

import asyncio
import gc

import pytest

from cubecast.api.client import Client
from cubecast.api.inbox import MAX_RUNS, Dropped
from cubecast.api.message import Batch, Gap, Message, Origin
from cubecast.errors import Closed, OutcomeUnknown, SlowConsumer
from cubecast.net.port.chunks import MESSAGE_OVERHEAD
from support.bus import Bus, BusPort
from support.running import run, until

ONE = 10 + MESSAGE_OVERHEAD
"""What a message of ten bytes costs."""


def ends() -> tuple[Client, Client, BusPort]:
    bus = Bus()
    ann, port = Client(bus.port()), bus.port()
    return ann, Client(port), port


def number(value: int) -> bytes:
    return b"%010d" % value


def test_iteration_survives_breaks_and_cancellation_without_loss():
    async def main():
        ann, bob, _ = ends()
        seen: list[int] = []
        async with bob.subscribe("t", gaps="ignore") as heard:

            async def read(most: int) -> None:
                async for message in heard:
                    seen.append(message.json())
                    if len(seen) % 7 == most:
                        break
                    await asyncio.sleep(0)

            for turn in range(30):
                reader = asyncio.create_task(read(turn % 7))
                await ann.publish_batch("t", range(10 * turn, 10 * turn + 10))
                for _ in range(turn % 5):
                    await asyncio.sleep(0)
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)
            await ann.publish("t", 300)
            assert 20 < len(seen) < 300
            while seen[-1] != 300:
                seen.append((await heard.next(30)).json())
        assert seen == list(range(301))

    run(main())


def test_a_timed_out_next_takes_nothing():
    async def main():
        ann, bob, _ = ends()
        async with bob.subscribe("t") as heard:
            for value in range(50):
                waiting = [asyncio.create_task(heard.next(0.001)) for _ in range(3)]
                await asyncio.sleep(0)
                if value % 2:
                    for task in waiting:
                        task.cancel()
                await ann.publish("t", value)
                results = await asyncio.gather(*waiting, return_exceptions=True)
                got = [result for result in results if not isinstance(result, BaseException)]
                if not got:
                    got = [await heard.next(30)]
                assert [message.data for message in got] == [value]

    run(main())


def test_several_readers_share_without_losing_or_repeating():
    async def main():
        ann, bob, _ = ends()
        seen: list[list[int]] = [[], [], []]
        async with bob.subscribe("t", gaps="ignore") as heard:

            async def read(mine: list[int]) -> None:
                while True:
                    async for message in heard:
                        mine.append(message.json())
                        await asyncio.sleep(0)
                        if len(mine) % 3 == 0:
                            break

            readers = [asyncio.create_task(read(mine)) for mine in seen]
            for start in range(0, 90, 9):
                await ann.publish_batch("t", range(start, start + 9))
            await until(lambda: sum(map(len, seen)) == 90)
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
        assert sorted(value for mine in seen for value in mine) == list(range(90))
        assert all(mine == sorted(mine) for mine in seen)

    run(main())


def test_batches_come_whole_and_begin_where_another_reader_stopped():
    async def main():
        ann, bob, port = ends()
        async with bob.subscribe("t") as heard:
            await ann.publish_batch("t", range(5))
            port.announce_gap("t")
            await ann.publish_batch("t", range(5, 8))
            assert (await heard.next(30)).data == 0
            pieces = []
            async for piece in heard.batches():
                pieces.append(piece)
                if len(pieces) == 3:
                    break
            first, gap, last = pieces
            assert isinstance(first, Batch) and [message.data for message in first] == [1, 2, 3, 4]
            assert first.counter == 2
            assert isinstance(gap, Gap) and len(last) == 3

    run(main())


def test_block_asks_the_node_to_wait_and_to_go_on():
    async def main():
        ann, bob, port = ends()
        async with bob.subscribe("t", gaps="ignore", budget=4 * ONE, patience=60) as heard:
            for value in range(20):
                await ann.publish("t", number(value))
            assert port.calls == [("pause", 1)]
            assert heard.held == 4 * ONE
            seen = []
            async for message in heard:
                seen.append(int(message.data))
                assert heard.held <= 4 * ONE
                if seen[-1] == 19:
                    break
            assert seen == list(range(20))
            assert port.calls.count(("resume", 1)) == port.calls.count(("pause", 1)) > 1

    run(main())


def test_block_does_not_wait_for_ever_for_one_that_reads_nothing():
    async def main():
        ann, bob, port = ends()
        dead = bob.subscribe("t", gaps="ignore", budget=4 * ONE, patience=0.02)
        slow = bob.subscribe("t", gaps="ignore", budget=4 * ONE, patience=60)
        await slow.ready()
        for value in range(20):
            await ann.publish("t", number(value))
        with pytest.raises(SlowConsumer, match="nothing was read"):
            await dead.ended()
        assert [int((await dead.next()).data) for _ in range(4)] == [0, 1, 2, 3]
        assert [int((await slow.next()).data) for _ in range(20)] == list(range(20))
        assert len(port.wires) == 1

    run(main())


def test_pausing_often_leaves_one_clock_running(monkeypatch):
    async def main():
        ann, bob, port = ends()
        loop = asyncio.get_running_loop()
        clocks = []
        async with bob.subscribe("t", gaps="ignore", budget=ONE, patience=60) as heard:
            monkeypatch.setattr(loop, "call_later", lambda *arguments: clocks.append(arguments))
            for value in range(20):
                await ann.publish("t", number(value))
                assert int((await heard.take(1))[0].data) == value
                heard_nothing_more = asyncio.ensure_future(heard.next())
                await asyncio.sleep(0)
                heard_nothing_more.cancel()
            monkeypatch.undo()
        assert port.calls.count(("pause", 1)) == 20 and len(clocks) == 1

    run(main())


def test_disconnect_lets_what_has_arrived_be_read_and_then_says_why():
    async def main():
        ann, bob, port = ends()
        heard = bob.subscribe("t", gaps="ignore", when_slow="disconnect", budget=4 * ONE)
        await heard.ready()
        for value in range(20):
            await ann.publish("t", number(value))
        assert not port.wires
        assert [int(message.data) for message in [await heard.next() for _ in range(4)]] == [0, 1, 2, 3]
        with pytest.raises(SlowConsumer, match="budget"):
            await heard.next()
        with pytest.raises(SlowConsumer):
            await heard.ended()

    run(main())


@pytest.mark.parametrize(("when_slow", "kept"), [("drop-oldest", [16, 17, 18, 19]), ("drop-newest", [0, 1, 2, 3])])
def test_drop_names_what_was_dropped_in_its_place(when_slow, kept):
    async def main():
        ann, bob, _ = ends()
        async with bob.subscribe("t", when_slow=when_slow, budget=4 * ONE) as heard:
            for value in range(20):
                await ann.publish("t", number(value))
                assert heard.held <= 4 * ONE
            events = [await heard.next(30) for _ in range(5)]
            gap = events.pop(0 if when_slow == "drop-oldest" else -1)
            assert [int(message.data) for message in events] == kept
            assert isinstance(gap, Gap) and gap.count == 16 and len(gap.missing) == 1
            lost = range(gap.missing[0].first, gap.missing[0].last + 1)
            assert sorted([*lost, *(value + 1 for value in kept)]) == list(range(1, 21))
            await ann.publish("t", number(20))
            assert int((await heard.next(30)).data) == 20

    run(main())


def test_a_batch_larger_than_the_budget_is_still_delivered():
    async def main():
        ann, bob, _ = ends()
        for when_slow in ("block", "disconnect", "drop-oldest", "drop-newest"):
            async with bob.subscribe("t", when_slow=when_slow, budget=10) as heard:
                await ann.publish_batch("t", [bytes(100), bytes(100)])
                assert [len(message.data) for message in await heard.take(5, 1)] == [100, 100]

    run(main())


def test_what_was_dropped_is_named_in_bounded_space():
    dropped = Dropped(">")
    for counter in range(1, 10 * MAX_RUNS, 2):
        dropped.add(Batch(Origin("t", 1, 0), counter, [b""]))
    gap = dropped.gap("slow")
    assert gap.count == 5 * MAX_RUNS and len(gap.missing) == MAX_RUNS


def test_news_of_a_gap_that_names_nothing_is_not_dropped_without_trace():
    dropped = Dropped(">")
    assert not dropped
    dropped.add(Gap("t", "moved to another node"))
    assert dropped


def test_the_loss_of_the_port_is_told_after_what_has_arrived():
    async def main():
        ann, bob, port = ends()
        async with bob.subscribe("t", gaps="ignore") as heard:
            await ann.publish("t", 1)
            port.lose(OutcomeUnknown("the node is gone"))
            assert (await heard.next()).data == 1
            with pytest.raises(OutcomeUnknown):
                await heard.next()
            with pytest.raises(OutcomeUnknown):
                await heard.ended()

    run(main())


def test_closing_wakes_the_readers_and_drops_the_rest():
    async def main():
        ann, bob, port = ends()
        heard = bob.subscribe("t")
        await heard.ready()
        reader = asyncio.create_task(heard.next())
        await asyncio.sleep(0)
        heard.close()
        with pytest.raises(Closed):
            await reader
        assert not port.wires and heard.closed

        early = bob.subscribe("t")
        early.close()
        with pytest.raises(Closed, match="before it was ready"):
            await early.ready()

        again = bob.subscribe("t")
        await again.ready()
        await ann.publish_batch("t", range(10))
        seen = []
        async for message in again:
            seen.append(message)
            if len(seen) == 2:
                again.close()
        assert len(seen) == 2 and again.held == 0

    run(main())


def test_a_subscription_nobody_can_read_any_more_is_closed():
    async def main():
        ann, bob, port = ends()
        await ann.publish("t", 0)

        async def first_only() -> Message | Gap:
            async for event in bob.subscribe("t"):
                return event
            raise AssertionError

        reading = asyncio.create_task(first_only())
        await until(lambda: port.wires)
        await ann.publish_batch("t", range(1, 4))
        assert (await reading).data == 1
        del reading
        gc.collect()
        await until(lambda: not port.wires)

    run(main())
