"""Redis publish/subscribe: one PUBLISH awaited after the other, or as many as there are in a pipeline."""

import asyncio
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import redis.asyncio

from bench.peers.turns import serve_async
from cubecast.experiments.live_load.load import Load

TOPIC = "chat"


class Peer:
    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._client: Any = redis.asyncio.Redis(host=host, port=int(port))
        self._channel = self._client.pubsub(ignore_subscribe_messages=True)
        self._reader: asyncio.Task[None] | None = None

    async def connect(self, deliver: Callable[[bytes], None]) -> None:
        await self._channel.subscribe(TOPIC)
        await self._channel.get_message(ignore_subscribe_messages=False, timeout=30.0)
        self._reader = asyncio.ensure_future(self._read(deliver))

    async def _read(self, deliver: Callable[[bytes], None]) -> None:
        async for message in self._channel.listen():
            deliver(message["data"])

    async def publish(self, messages: list[bytes]) -> None:
        publish = self._client.publish
        for message in messages:
            await publish(TOPIC, message)

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
        await self._channel.aclose()
        await self._client.aclose()


class Pipelines(Peer):
    async def publish(self, messages: list[bytes]) -> None:
        pipeline = self._client.pipeline(transaction=False)
        for message in messages:
            pipeline.publish(TOPIC, message)
        await pipeline.execute()


def member(address: str, load: Load, number: int, pipe: Connection, join: str | None) -> None:
    serve_async(Peer(address), load, number, pipe)


def pipelines(address: str, load: Load, number: int, pipe: Connection, join: str | None) -> None:
    serve_async(Pipelines(address), load, number, pipe)
