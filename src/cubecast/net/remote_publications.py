"""A thin client's publications: coalesced per turn, sent as the node gives credit, waited for."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cubecast.errors import BadInput, CubecastError, OutcomeUnknown
from cubecast.ids import Topic
from cubecast.net.config import MAX_PAYLOAD
from cubecast.net.gateway_messages import AwaitStable, Stable, Taken
from cubecast.net.outbox import Outbox, Uncertain
from cubecast.net.patterns import check_topic

BUDGET = 4 << 20
"""Bytes published and not taken by a node, before publishers wait."""


class RemotePublications:
    """`send` sends at once when `is_connected` says so; what does not go out now goes out with the next connection."""

    def __init__(
        self, send: Callable[[Any], None], is_connected: Callable[[], bool], on_refused: Callable[[str], object]
    ) -> None:
        self._send, self._is_connected, self._on_refused = send, is_connected, on_refused
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox(BUDGET)
        self._is_dirty = False
        self._requests = 0
        self._stable: dict[int, tuple[int, asyncio.Future[None]]] = {}
        self._room: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None

    def publish(self, topic: Topic, payloads: Sequence[bytes]) -> int:
        check_topic(topic)
        if payloads and max(map(len, payloads)) > MAX_PAYLOAD:
            size = max(map(len, payloads))
            raise BadInput(f"a message of {size} bytes; at most {MAX_PAYLOAD} are possible. Nothing was published")
        if not self._is_dirty:
            self._is_dirty = True
            self._loop.call_soon(self.flush)
        return self._outbox.publish(topic, payloads)

    def flush(self) -> None:
        """Send what may be sent."""
        self._is_dirty = False
        if self._is_connected():
            for message in self._outbox.take():
                self._send(message)

    @property
    def has_room(self) -> bool:
        return self._outbox.has_room

    def room(self) -> Awaitable[None]:
        if self._room is None or self._room.done():
            self._room = self._loop.create_future()
            self._wake()
        return self._room

    def stable(self, topic: Topic, accepted: int) -> Awaitable[None]:
        future: asyncio.Future[None] = self._loop.create_future()
        if not accepted:
            future.set_result(None)  # nothing was ever published here
            return future
        if accepted <= self._outbox.base:
            future.set_exception(OutcomeUnknown(f"the node that took this publication on {topic} is gone"))
            return future
        self._requests += 1
        request = self._requests
        self._stable[request] = accepted, future
        future.add_done_callback(lambda _: self._stable.pop(request, None))
        self._outbox.ask(AwaitStable(request, topic), accepted)
        if not self._is_dirty:
            self.flush()
        return future

    def drained(self) -> Awaitable[None]:
        """Done when a node has taken everything, or nothing is left of which that could be known."""
        self._drained = self._loop.create_future()
        self._wake()
        return self._drained

    @property
    def left(self) -> int:
        """Messages no node is known to have taken."""
        return self._outbox.left

    def on_taken(self, message: Taken) -> None:
        self._outbox.taken(message.number)
        if message.refused is not None:
            self._on_refused(message.refused)
        self.flush()
        self._wake()

    def on_stable(self, message: Stable) -> None:
        _, future = self._stable.get(message.request, (0, None))
        if future is not None and not future.done():
            if message.unknown is None:
                future.set_result(None)
            else:
                future.set_exception((BadInput if message.refused else OutcomeUnknown)(message.unknown))

    def connection_lost(self, node: str) -> Uncertain:
        uncertain = self._outbox.connection_lost()
        for accepted, future in list(self._stable.values()):
            if accepted <= self._outbox.base and not future.done():
                future.set_exception(OutcomeUnknown(f"the connection to {node} broke before the answer came"))
        self._wake()
        return uncertain

    def close(self, error: CubecastError) -> None:
        futures = [self._room, self._drained, *(future for _, future in self._stable.values())]
        for future in futures:
            if future is not None and not future.done():
                future.set_exception(error)
                future.exception()  # whoever waits gets it; if nobody does, that is no mistake

    def _wake(self) -> None:
        if self._room is not None and not self._room.done() and self._outbox.has_room:
            self._room.set_result(None)
        if self._drained is not None and not self._drained.done() and self._outbox.is_empty:
            self._drained.set_result(None)
