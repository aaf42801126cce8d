"""No request of a client, and no departure, keeps a node from its other work: each at its limit, step by step."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from cubecast.net.gateway.link import MOST_REQUESTS
from cubecast.net.gateway.messages import (
    AwaitDurable,
    AwaitStable,
    CaughtUp,
    Deliver,
    Durable,
    ListLog,
    LogList,
    LogRange,
    Pause,
    Ping,
    Pong,
    Publish,
    ReadLog,
    Ready,
    Resume,
    Stable,
    StatusReply,
    StatusRequest,
    Subscribe,
    Taken,
    Unsubscribe,
    decode_from_node,
    encode,
)
from cubecast.net.links.framing import framed
from cubecast.net.links.handshake import MAGIC, VERSION, Accepted, ClientGreeting, decode_answer
from cubecast.net.links.handshake import encode as greeted
from cubecast.net.links.loop import Slices
from cubecast.net.port.port import FromBeginning, FromCut
from cubecast.net.settings.security import Limits
from support.cluster import cluster
from support.loop_steps import steps
from support.running import run, until
from support.secured import Raw

MANY = 9_900
WORST = 0.05
GENEROUS = Limits(requests_per_second=1e9, subscriptions_per_pattern=10_000)
"""With as many as a client may have, all alike, at once."""
GREETING = greeted(ClientGreeting(MAGIC, VERSION, VERSION, "cubecast", "greedy"))


async def visitor(node):
    caller = await Raw.open(node._live.address)
    caller.send(GREETING)
    assert isinstance(decode_answer(await caller.frame()), Accepted)
    return caller


async def told(caller, kind, count=1):
    """Read until so many answers of this kind came; a client that waits says now and then that it is there."""
    while count:
        reading = asyncio.ensure_future(caller.frame())
        while not (await asyncio.wait({reading}, timeout=5.0))[0]:
            say(caller, [Ping()])
        frame = await reading
        assert frame is not None, "it was cut off"
        count -= isinstance(decode_from_node(frame), kind)


def say(caller, messages):
    caller.writer.write(b"".join(framed(encode(message)) for message in messages))


async def subscribed(caller, patterns):
    say(caller, [Subscribe(number, pattern) for number, pattern in enumerate(patterns)])
    await told(caller, Ready, len(patterns))


def slowly(cases, *slow):
    return [pytest.param(case, marks=pytest.mark.slow) if case in slow else case for case in cases]


TOPICS = {
    "topics": [f"t.{number}" for number in range(MANY)],
    "one topic": ["t.1"] * MANY,
    "patterns": [f"t.{number}.*" for number in range(MANY)],
    "one pattern": ["t.>"] * MANY,
}


@asynccontextmanager
async def measured(**options):
    async with cluster(2, limits=GENEROUS, retry=0.5, **options) as nodes:
        with steps() as found:
            yield nodes[0], nodes[1], found
        assert found.worst < WORST, found


@pytest.mark.parametrize("kind", slowly(TOPICS, "patterns", "one pattern"))
def test_many_subscriptions_and_their_departure(kind):
    async def main():
        async with measured() as (node, _, _):
            callers = [await visitor(node) for _ in range(3)]
            await subscribed(callers[0], TOPICS[kind])
            say(callers[0], [Pause(number) for number in range(MANY)])
            say(callers[0], [Resume(number) for number in range(MANY)])
            say(callers[0], [Ping()])
            await told(callers[0], Pong)
            await subscribed(callers[1], TOPICS[kind])
            await subscribed(callers[2], TOPICS[kind])
            say(callers[2], [Unsubscribe(number) for number in range(MANY)])
            for caller in callers:
                caller.close()
            await until(lambda: node._live.port.describe()["subscriptions"] == 0)

    run(main())


def test_one_message_for_many_subscriptions():
    async def main():
        async with measured() as (node, other, _):
            caller = await visitor(node)
            await subscribed(caller, TOPICS["one topic"])
            await other.publish("t.1", b"x", wait="stable")
            await told(caller, Deliver, MANY)
            caller.close()

    run(main())


PUBLISHED = {
    "the largest": [Publish(1, "t", [bytes(1 << 20)])],
    "the smallest": [Publish(1, "t", [b""] * 16_000)],
    "one after the other": [Publish(number + 1, "t", [b""]) for number in range(MANY)],
    "on many topics": [Publish(number + 1, f"t.{number}", [b"x"]) for number in range(MANY)],
}


@pytest.mark.parametrize("kind", slowly(PUBLISHED, "on many topics"))
def test_publications(kind):
    async def main():
        async with measured() as (node, other, _):
            caller, reader = await visitor(node), await visitor(other)
            await subscribed(reader, ["t", "t.>"])
            messages = PUBLISHED[kind]
            say(caller, messages)
            await until_taken(caller, len(messages))
            await told(reader, Deliver)
            asked = [AwaitStable(number, messages[-1].topic) for number in range(MOST_REQUESTS - 1)]
            say(caller, asked)
            await told(caller, Stable, len(asked))
            caller.close()

    run(main())


async def until_taken(caller, number):
    while True:
        message = decode_from_node(await caller.frame())
        if isinstance(message, Taken) and message.number == number:
            return


def test_what_a_node_says_of_itself():
    async def main():
        async with measured() as (node, _, _):
            caller = await visitor(node)
            await subscribed(caller, TOPICS["topics"])
            say(caller, [Publish(number + 1, f"t.{number}", [b"x"]) for number in range(MANY)])
            await until_taken(caller, MANY)
            say(caller, [StatusRequest(number) for number in range(30)])
            await told(caller, StatusReply, 30)
            caller.close()

    run(main())


SINCE = {
    "the beginning": FromBeginning(),
    "a large cut": FromCut([("t", source, 0, 1) for source in range(64)] * 300),
}


@pytest.mark.slow
@pytest.mark.parametrize("since", SINCE)
def test_the_log(since, tmp_path):
    async def main():
        async with cluster(1, data=tmp_path, log=(">",), limits=GENEROUS) as (node,):
            for topic in TOPICS["topics"]:
                await node.publish(topic, b"x")
            await node.publish_batch("t", [b"%d" % number for number in range(100_000)], wait="durable")
            with steps() as found:
                caller = await visitor(node)
                say(caller, [ListLog(number, "") for number in range(4)])
                await told(caller, LogList, 4)
                for start in (None, 1, 50_000, 90_000):
                    say(caller, [ReadLog(number, "t", start, None) for number in range(4)])
                    await told(caller, LogRange, 4)
                say(caller, [AwaitDurable(number, "t", True) for number in range(MOST_REQUESTS - 1)])
                await told(caller, Durable, MOST_REQUESTS - 1)
                say(caller, [Subscribe(1, "t", SINCE[since]), Subscribe(2, ">", SINCE[since])])
                await told(caller, CaughtUp, 2)
                caller.close()
            assert found.worst < WORST, found

    run(main())


@pytest.mark.parametrize("size", slowly([2, 4], 4))
def test_a_wildcard_where_there_are_many_topics(size):
    """Its subscriptions begin one after the other, and end so; then nothing is missing."""

    async def main():
        async with cluster(size, limits=GENEROUS, retry=0.5) as nodes:
            publisher, node = nodes[0], nodes[-1]
            for topic in TOPICS["topics"]:
                await publisher.publish(topic, b"early")
            await until(lambda: publisher._live.port.describe()["outgoing_in_all"] == MANY)
            with steps() as found:
                caller = await visitor(node)
                await subscribed(caller, [">"])
                for topic in TOPICS["topics"]:
                    await publisher.publish(topic, b"late")
                await told(caller, Deliver, MANY)
                caller.close()
                await until(lambda: not node._live.port.describe()["subscribed_in_all"])
                await until(lambda: node._live.life.driver.inspector.is_at_rest)
            assert found.worst < WORST, found

    run(main())


def test_many_pieces_of_work_take_turns():
    """A thousand at the same moment get no more of a pass than one."""

    async def main():
        slices, worked, others = Slices(allowance=0.0), [], 0
        for number in range(1000):
            left = iter(range(5))
            slices.begin(lambda number=number, left=left: worked.append(number) or next(left, None) is not None)
        while slices.is_behind:
            others += 1
            await asyncio.sleep(0)
        assert sorted(worked) == sorted([*range(1000)] * 6)
        assert others > 1000, "others have their turn in between"

    run(main())
