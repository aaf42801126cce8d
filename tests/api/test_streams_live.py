"""Brisa on real connections: messages to everybody in order, also when a member that others are fed by goes."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack

import pytest

import cubecast
from cubecast.report.live_status import status_tables
from support.commands import running_node
from support.running import run, until

SETTINGS = {"protocol": "brisa", "listen": "127.0.0.1:0"}
WAIT = 60.0


async def numbers(subscription: cubecast.Subscription, upto: int) -> list[int]:
    read: list[int] = []
    async with asyncio.timeout(WAIT):
        while not read or read[-1] < upto:
            read.append(int((await subscription.next()).text()))
    return read


def test_a_stream_reaches_everybody_in_order_also_past_a_member_that_goes():
    async def main() -> None:
        async with AsyncExitStack() as stack:
            publisher = await stack.enter_async_context(cubecast.Node(**SETTINGS))
            others = [cubecast.Node(**SETTINGS, join=[publisher.address]) for _ in range(4)]
            for node in others:
                await node.start()
            leaver, *stayers = others
            try:
                nodes = (publisher, *others)
                await until(lambda: all(node._live.machine.overlay.active for node in nodes))
                heard = [await stack.enter_async_context(node.subscribe("stream")) for node in stayers]
                for number in range(50):
                    await publisher.publish("stream", str(number))
                before = [await numbers(one, 49) for one in heard]
                await leaver.close()
                for number in range(50, 100):
                    await publisher.publish("stream", str(number))
                after = [await numbers(one, 99) for one in heard]
                for first, second in zip(before, after, strict=True):
                    assert first + second == list(range(first[0], 100))
            finally:
                for node in stayers:
                    await node.close()

    run(main())


def test_who_has_a_message_is_not_known_and_said_so():
    """It is published and arrives; that everybody has it nobody in an overlay can tell."""

    async def main() -> None:
        async with cubecast.Node(**SETTINGS) as publisher, cubecast.Node(**SETTINGS, join=[publisher.address]) as other:
            await until(lambda: publisher._live.machine.overlay.active and other._live.machine.overlay.active)
            async with other.subscribe("stream") as heard:
                with pytest.raises(cubecast.HandedOver):
                    await publisher.publish("stream", "7", wait="stable")
                assert await numbers(heard, 7) == [7]

    run(main())


def test_status_tells_the_place_of_a_node_in_every_stream():
    async def main() -> None:
        async with AsyncExitStack() as stack:
            publisher = await stack.enter_async_context(cubecast.Node(**SETTINGS))
            others = [
                await stack.enter_async_context(cubecast.Node(**SETTINGS, join=[publisher.address])) for _ in range(3)
            ]
            await until(lambda: all(node.neighbours for node in (publisher, *others)))
            heard = [await stack.enter_async_context(node.subscribe("stream")) for node in others]
            for number in range(30):
                await publisher.publish("stream", str(number))
            for one in heard:
                await numbers(one, 29)
            (root,) = (await publisher.status())["streams"]
            assert (root["parent"], root["depth"], root["publisher"]) == (None, 0, publisher.id)
            for node in others:
                status = await node.status()
                (mine,) = status["streams"]
                assert mine["messages"] == 30 and mine["behind"] == 0 and 1 <= mine["copies_per_message"] <= 3
                assert mine["depth"] >= 1 and mine["parent"] == mine["path"][-2]
                assert any(table.title == "streams: 1" for table in status_tables(status))

    run(main())


def test_a_subscriber_that_does_not_read_holds_up_nobody_and_gets_what_is_kept():
    """Its node relays to the only other member behind it, which gets everything meanwhile."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            publisher = await stack.enter_async_context(cubecast.Node(**SETTINGS))
            nodes = [
                await stack.enter_async_context(cubecast.Node(**SETTINGS, join=[publisher.address])) for _ in range(2)
            ]
            await until(lambda: all(len(node.neighbours) == 2 for node in (publisher, *nodes)))
            lazy = await stack.enter_async_context(nodes[0].subscribe("stream", budget=4096, patience=600))
            heard = await stack.enter_async_context(nodes[1].subscribe("stream"))
            for number in range(200):
                await publisher.publish("stream", f"{number}".ljust(1000))
            assert (await numbers(heard, 199))[-1] == 199
            read = await numbers(lazy, 199)
            assert read == list(range(read[0], 200))

    run(main())


def test_a_child_that_stands_still_holds_up_nobody_and_goes_on_from_the_buffer():
    """A process is stopped with connections open: what it is sent fills its link, and its siblings get the rest."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            publisher = await stack.enter_async_context(cubecast.Node(**SETTINGS, patience=WAIT))
            sibling = await stack.enter_async_context(
                cubecast.Node(**SETTINGS, patience=WAIT, join=[publisher.address])
            )
            heard = await stack.enter_async_context(sibling.subscribe("stream"))
            starting = running_node("--protocol", "brisa", "--join", publisher.address)
            child = await asyncio.to_thread(stack.enter_context, starting)
            machine = publisher._live.machine
            await until(lambda: len(publisher.neighbours) == 2)
            await publisher.publish("stream", "0")
            assert await numbers(heard, 0) == [0]
            (flow,) = machine.flows.values()
            await until(lambda: child.node in flow.children)
            os.kill(child.process.pid, signal.SIGSTOP)
            count = 0
            while not flow.behind:  # until its link takes nothing more
                count += 1
                await publisher.publish("stream", str(count).ljust(100_000))
            for _ in range(20):
                count += 1
                await publisher.publish("stream", str(count).ljust(100_000))
            assert (await numbers(heard, count))[-1] == count, "its sibling has everything meanwhile"
            (told,) = (await publisher.status())["streams"]
            assert told["slow"].keys() == {str(child.node)}
            os.kill(child.process.pid, signal.SIGCONT)
            await until(lambda: not flow.behind and flow._known[child.node].have == count + 1)

    run(main())
