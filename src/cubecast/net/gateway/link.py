"""What a gateway has of its client: a connection, and the client's open requests."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from cubecast.errors import RemoteProtocolError
from cubecast.net.links.connection import Traffic

MOST_REQUESTS = 1_000
"""Questions of one client that may be open at a time."""


class Link(Protocol):
    """What a gateway needs of a connection."""

    host: str
    label: str
    budget: int
    traffic: Traffic
    is_full: bool

    @property
    def queued(self) -> int: ...
    def send(self, frame: bytes) -> None: ...
    def abort(self, reason: str) -> None: ...
    def close(self) -> None: ...


class OpenRequests:
    """Questions of one client that are not answered yet."""

    def __init__(self) -> None:
        self.count = 0
        self._open: set[asyncio.Future[Any]] = set()

    def begin(self) -> None:
        """One more; RemoteProtocolError when there are too many."""
        self.count += 1
        if self.count > MOST_REQUESTS:
            raise RemoteProtocolError(f"more than {MOST_REQUESTS} requests are open")

    def follow(self, answer: Awaitable[Any], done: Callable[[asyncio.Future[Any]], None]) -> None:
        """When it is answered, `done` tells the client, unless that is gone."""

        def answered(future: asyncio.Future[Any]) -> None:
            self.count -= 1
            self._open.discard(future)
            if not future.cancelled():
                done(future)

        future = asyncio.ensure_future(answer)
        self._open.add(future)
        future.add_done_callback(answered)

    def close(self) -> None:
        for future in list(self._open):
            future.cancel()
