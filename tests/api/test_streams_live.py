"""Brisa on real connections: messages to everybody in order, also when a member that others are fed by goes."""

import asyncio
from contextlib import AsyncExitStack

import pytest

import cubecast
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
                with pytest.raises(cubecast.OutcomeUnknown):
                    await publisher.publish("stream", "7", wait="stable")
                assert await numbers(heard, 7) == [7]

    run(main())
