"""Clients that speak the gateway's protocol and nothing more: over a connection, or a WebSocket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, Protocol

from cubecast.addresses import Address
from cubecast.api.envelope import seal
from cubecast.api.node import Node
from cubecast.errors import BadInput, CubecastError, NotDurable, OutcomeUnknown
from cubecast.net.gateway.messages import (
    AwaitDurable,
    AwaitStable,
    Durable,
    Publish,
    Stable,
    Taken,
    decode_from_node,
    encode,
)
from cubecast.net.links.calling import call
from cubecast.net.links.handshake import MAGIC, VERSION, Accepted, ClientGreeting
from support.websockets import visitor

_KINDS = {kind.__name__: kind for kind in (BadInput, NotDurable, OutcomeUnknown)}


class Words(Protocol):
    async def say(self, *messages: Any) -> None: ...
    async def hear(self) -> Any: ...


class _Socket:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._heard: asyncio.Queue[Any] = asyncio.Queue()
        connection.take_over(self._on_frames, lambda *_: None)

    def _on_frames(self, _: Any, frames: list[bytes]) -> None:
        for frame in frames:
            self._heard.put_nowait(decode_from_node(frame))

    async def say(self, *messages: Any) -> None:
        for message in messages:
            self._connection.send(encode(message))

    async def hear(self) -> Any:
        return await self._heard.get()


class RawClient:
    """Publishes without asking first; raises what the node answers."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._published = self._requests = 0

    async def publish(self, topic: str, data: Any, *, wait: str | None = None) -> None:
        self._published += 1
        await self._words.say(Publish(self._published, topic, [seal(data, None)]))
        if wait is not None:
            await self.ask(topic, wait)

    async def ask(self, topic: str, wait: str) -> None:
        """About the last publication."""
        self._requests += 1
        question = AwaitStable(self._requests, topic)
        await self._words.say(question if wait == "stable" else AwaitDurable(self._requests, topic, False))
        async with asyncio.timeout(30):
            while not isinstance(answer := await self._words.hear(), Durable | Stable):
                assert isinstance(answer, Taken), answer
        error = _error(answer)
        if error is not None:
            raise error


def _error(answer: Durable | Stable) -> CubecastError | None:
    if isinstance(answer, Durable):
        return None if answer.error is None else _KINDS[answer.error[0]](answer.error[1])
    if answer.unknown is None:
        return None
    return (BadInput if answer.refused else OutcomeUnknown)(answer.unknown)


@asynccontextmanager
async def raw_client(node: Node) -> AsyncIterator[RawClient]:
    opening = ClientGreeting(MAGIC, VERSION, VERSION, "cubecast", "raw")
    connection, answer = await call(Address.parse(str(node.address)), opening)
    assert isinstance(answer, Accepted)
    try:
        yield RawClient(_Socket(connection))
    finally:
        connection.close()


@asynccontextmanager
async def web_client(node: Node) -> AsyncIterator[RawClient]:
    """The node needs `http`."""
    place: Any = SimpleNamespace(url=f"http://{node._live.web.address}/ws")
    async with visitor(place) as guest:
        yield RawClient(guest)
