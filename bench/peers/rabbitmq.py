"""RabbitMQ: a fanout exchange, a queue of its own for every member, no acknowledgements to or from anybody."""

from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import aio_pika

from bench.peers.turns import serve_async
from cubecast.experiments.live_load.load import Load

TOPIC = "chat"


class Peer:
    def __init__(self, address: str) -> None:
        self._address = address
        self._connection: Any = None
        self._exchange: Any = None

    async def connect(self, deliver: Callable[[bytes], None]) -> None:
        async def on_message(message: Any) -> None:
            deliver(message.body)

        self._connection = await aio_pika.connect(f"amqp://guest:guest@{self._address}/")
        channel = await self._connection.channel(publisher_confirms=False)
        self._exchange = await channel.declare_exchange(TOPIC, aio_pika.ExchangeType.FANOUT)
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(self._exchange)
        await queue.consume(on_message, no_ack=True)

    async def publish(self, messages: list[bytes]) -> None:
        publish = self._exchange.publish
        for message in messages:
            await publish(aio_pika.Message(message), routing_key="")

    async def close(self) -> None:
        await self._connection.close()


def member(address: str, load: Load, number: int, pipe: Connection, join: str | None) -> None:
    serve_async(Peer(address), load, number, pipe)
