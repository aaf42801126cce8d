"""Equality filters at RabbitMQ's headers exchange beside this project's index, in the same run.

Every filter demands a symbol of 500 and a side, which is all such an exchange can say (`x-match: all`); what matches
goes to one queue, of which nobody reads, so that routing is what is counted. Events are published one after the other;
the clock stops when one that goes to a queue of its own has come out of it. What both sides find is compared.
"""

import asyncio
from collections.abc import Sequence
from random import Random
from time import perf_counter
from typing import Any

from bench.peers.servers import program, rabbitmq
from cubecast.protocol.filters import Attributes, MatchingIndex, parse

SYMBOLS, SIDES = 500, ("buy", "sell")
EVENTS = 500


def drawn(rng: Random, count: int) -> list[dict[str, str]]:
    return [{"symbol": f"S{rng.randrange(SYMBOLS):03}", "side": rng.choice(SIDES)} for _ in range(count)]


async def routed(
    address: str, filters: Sequence[dict[str, str]], events: Sequence[dict[str, str]]
) -> tuple[float, int]:
    """Events per second through the exchange, and how many of them some filter matched."""
    import aio_pika

    connection = await aio_pika.connect(f"amqp://guest:guest@{address}/")
    channel = await connection.channel(publisher_confirms=False)
    exchange = await channel.declare_exchange("events", aio_pika.ExchangeType.HEADERS)
    wanted, last = await channel.declare_queue(exclusive=True), await channel.declare_queue(exclusive=True)
    for number, one in enumerate(filters):  # bindings that are alike would be one: each has a number nobody looks at
        await wanted.bind(exchange, arguments={"x-match": "all", **one, "x-number": number})
    await last.bind(exchange, arguments={"x-match": "all", "end": True})
    arrived = asyncio.Event()

    async def at_end(message: Any) -> None:
        arrived.set()

    await last.consume(at_end, no_ack=True)
    began = perf_counter()
    for one in (*events, {"end": True}):
        await exchange.publish(aio_pika.Message(b"x" * 100, headers=dict(one)), routing_key="", mandatory=False)
    await arrived.wait()
    took = perf_counter() - began
    found = (await channel.declare_queue(wanted.name, passive=True)).declaration_result.message_count
    await connection.close()
    return len(events) / took, found or 0


def matched(filters: Sequence[Attributes], events: Sequence[Attributes]) -> tuple[float, int]:
    index: MatchingIndex[int] = MatchingIndex()
    for number, one in enumerate(filters):
        index.add(number, parse(" and ".join(f"{name} = '{value}'" for name, value in one.items())))
    began = perf_counter()
    found = sum(bool(index.matching(event)) for event in events)
    return len(events) / (perf_counter() - began), found


def compare(counts: Sequence[int], seed: int) -> None:
    if program("rabbitmq-server") is None:
        print("RabbitMQ is not installed here; with it, its headers exchange would stand beside the index")
        return
    print(f"{'equality':>8} {'index events/s':>15} {'RabbitMQ events/s':>18} {'ratio':>8}")
    for count in counts:
        rng = Random(seed)
        filters, events = drawn(rng, count), drawn(rng, EVENTS)
        fast, ours = matched(filters, events)
        with rabbitmq() as address:
            slow, theirs = asyncio.run(routed(address, filters, events))
        assert ours == theirs, f"the index found {ours} events that match, RabbitMQ {theirs}"
        print(f"{count:>8,} {fast:>15,.0f} {slow:>18,.1f} {fast / slow:>8.1f}", flush=True)
