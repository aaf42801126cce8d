"""What errors of subscriptions and requests mean, for a node in this process and for a client of one."""

import asyncio

import pytest

from cubecast.api.connect import connect
from cubecast.api.message import Gap, Message
from cubecast.api.node import Node
from cubecast.errors import Missed, NotKept, RequestFailed, SlowConsumer
from cubecast.ids import MessageId
from support.cluster import FAST
from support.running import run, until

KINDS = ["node", "thin client"]


async def reader_at(node, kind):
    return node if kind == "node" else await connect(node.address)


@pytest.mark.parametrize("kind", KINDS)
def test_a_slow_consumer_reads_what_had_arrived_before_it_hears_that_it_is_over(kind):
    async def main():
        async with Node(**FAST) as node:
            reader = await reader_at(node, kind)
            subscription = reader.subscribe("t", budget=1000, when_slow="disconnect")
            await subscription.ready()
            for number in range(50):
                await node.publish("t", b"%03d" % number + b"." * 100, wait="stable")
            got: list[int] = []
            with pytest.raises(SlowConsumer):
                while True:
                    got += [int(message.data[:3]) for message in await subscription.take(10, 30)]
            assert got == list(range(len(got))) and len(got) < 50
            assert subscription.closed
            await reader.close()

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_missed_messages_are_lost_to_the_subscription_and_it_goes_on(kind):
    async def main():
        async with Node(**FAST) as node:
            reader = await reader_at(node, kind)
            subscription = reader.subscribe("t", gaps="raise")
            await subscription.ready()
            await node.publish("t", 1)
            assert (await subscription.next(30)).data == 1
            node._live.port.on_gap("t", (MessageId(9, 0, 1),), "it was lost")
            with pytest.raises(Missed) as missed:
                await subscription.next(30)
            assert isinstance(missed.value.args[1], Gap) and missed.value.args[1].count == 1
            await node.publish("t", 2)
            assert (await subscription.next(30)).data == 2
            await reader.close()

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_request_reached_its_handler_and_one_that_is_late_may_have(kind):
    async def main():
        heard: list[object] = []
        release = asyncio.Event()

        async def handler(message: Message) -> None:
            heard.append(message.data)
            if message.data == "late":
                await release.wait()
            else:
                raise ValueError("it cannot")

        async with Node(**FAST) as node, Node(join=[node.address], **FAST) as other:
            service = other.serve("ask", handler)
            await service.ready()
            asker = await reader_at(node, kind)
            with pytest.raises(RequestFailed, match="it cannot"):
                await asker.request("ask", "fails", timeout=30)
            asking = asyncio.create_task(asker.request("ask", "late", timeout=0.5))
            with pytest.raises(TimeoutError):
                await asking
            await until(lambda: heard == ["fails", "late"])
            release.set()
            await asker.close()

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_a_past_that_is_not_kept_is_refused(kind):
    async def main():
        async with Node(**FAST) as node:
            reader = await reader_at(node, kind)
            with pytest.raises(NotKept):
                await reader.subscribe("t", since="beginning").ready()
            await reader.close()

    run(main())
