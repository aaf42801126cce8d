"""NATS (core, without JetStream): `publish` without a flush, the client writes what has gathered; a callback."""

from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import nats

from bench.peers.turns import serve_async
from cubecast.experiments.live_load.load import Load

TOPIC = "chat"


class Peer:
    def __init__(self, address: str) -> None:
        self._address = address
        self._client: Any = None

    async def connect(self, deliver: Callable[[bytes], None]) -> None:
        async def on_message(message: Any) -> None:
            deliver(message.data)

        self._client = await nats.connect(f"nats://{self._address}")
        await self._client.subscribe(TOPIC, cb=on_message)
        await self._client.flush()

    async def publish(self, messages: list[bytes]) -> None:
        publish = self._client.publish
        for message in messages:
            await publish(TOPIC, message)

    async def close(self) -> None:
        await self._client.close()


def member(address: str, load: Load, number: int, pipe: Connection, join: str | None) -> None:
    serve_async(Peer(address), load, number, pipe)
