"""What a thin client promised to publish, told to each node it talks to."""

import asyncio
from collections.abc import Callable
from typing import Any

from cubecast.errors import BadInput, CubecastError, NotPermitted
from cubecast.ids import Topic
from cubecast.net.gateway.messages import Advertise, Advertised
from cubecast.patterns import check_topic
from cubecast.protocol.filters import parse

_ERRORS: dict[str, type[CubecastError]] = {kind.__name__: kind for kind in (BadInput, NotPermitted)}


class Advertisements:
    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._made: dict[Topic, str | None] = {}
        self._open: dict[int, tuple[Advertise, asyncio.Future[None]]] = {}
        self._numbers = 0

    def advertise(self, topic: Topic, where: str | None) -> asyncio.Future[None]:
        if where is not None:
            parse(where)  # BadInput here and now, although the node reads it too
        return self._ask(Advertise(self._next(), check_topic(topic), where))

    def unadvertise(self, topic: Topic) -> asyncio.Future[None]:
        return self._ask(Advertise(self._next(), check_topic(topic), None, True))

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _ask(self, asked: Advertise) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open[asked.request] = asked, future
        self._send(asked)
        return future

    def on_advertised(self, message: Advertised) -> None:
        asked, future = self._open.pop(message.request, (None, None))
        if asked is None or future is None:
            return
        if message.error is None:
            if asked.ends:
                self._made.pop(asked.topic, None)
            else:
                self._made[asked.topic] = asked.where
        if not future.done():
            if message.error is None:
                future.set_result(None)
            else:
                kind, text = message.error
                future.set_exception(_ERRORS.get(kind, CubecastError)(text))

    def open_all(self) -> None:
        """At a node that knows nothing of them. What others promised of the same topic there stays."""
        for topic, where in self._made.items():
            self._send(Advertise(self._next(), topic, where))
        for asked, _ in self._open.values():
            self._send(asked)

    def fail(self, error: CubecastError) -> None:
        for _, future in self._open.values():
            if not future.done():
                future.set_exception(error)
