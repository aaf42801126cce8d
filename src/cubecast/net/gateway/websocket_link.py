"""One WebSocket as the link of a gateway: what is sent in one turn goes out together, what waits is bounded.

A WebSocket message from the node holds one or more of the gateway's messages, one after the other; MessagePack says
where each ends. The writing task waits whenever the browser does not read, so what it has not taken is what waits here.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from aiohttp import web

from cubecast.net.links.connection import FULL_ABOVE, ROOM_BELOW, Traffic

MOST_TOGETHER = 64 << 10
"""Bytes after which no more is put into one WebSocket message."""
LONGEST_REASON = 120
"""Bytes; a close frame holds no more."""


class WebSocketLink:
    """A `gateway.Link`. Its owner runs `write` beside its own reading, and stops both when `ended` is done."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request, budget: int) -> None:
        self._socket, self._transport, self.budget = socket, request.transport, budget
        self.host = request.remote or ""
        self.label = self.host or "a browser"
        self._out: deque[bytes] = deque()
        self.queued = 0
        """Bytes that wait for the browser to read."""
        self.traffic = Traffic()
        self._work = asyncio.Event()
        self._is_closing = False
        self.is_full = False
        self.on_room: Callable[[], None] = lambda: None
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Why this side ends the connection."""

    def send(self, frame: bytes) -> None:
        if self.ended.done():
            return
        self._out.append(frame)
        self.queued += len(frame)
        self._work.set()
        if self.queued > self.budget:
            self.abort(f"it does not read: {self.queued} bytes wait for it")
        elif self.queued > FULL_ABOVE:
            self.is_full = True

    def received(self, frame: bytes) -> bytes:
        self.traffic.bytes_in += len(frame)
        self.traffic.frames_in += 1
        return frame

    def certificate(self) -> dict[str, Any] | None:
        """The browser's, verified; None when it showed none."""
        return None if self._transport is None else self._transport.get_extra_info("peercert") or None

    @property
    def was_cut(self) -> bool:
        """Did this side end it for what the browser did or did not do?"""
        return self.ended.done() and not self._is_closing

    def close(self) -> None:
        """Write what is queued, then close."""
        self._is_closing = True
        self._work.set()

    def abort(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)
            self._out.clear()

    async def write(self) -> None:
        """Until the link is closed and everything is written."""
        while True:
            while self._out:
                message = self._together()
                await self._socket.send_bytes(message)
                self.queued -= len(message)
                self.traffic.bytes_out += len(message)
                self.traffic.frames_out += 1
                if self.is_full and self.queued < ROOM_BELOW:
                    self.is_full = False
                    self.on_room()
            if self._is_closing:
                self.abort("this node closes")
                return
            self._work.clear()
            await self._work.wait()

    async def hang_up(self, code: int, reason: str) -> None:
        """Say why and wait for the answer, but not long: who does not read does not answer either."""
        cut = reason.encode()[:LONGEST_REASON].decode(errors="ignore")
        try:
            await self._socket.close(code=code, message=cut.encode(), drain=False)
        finally:
            if self._transport is not None:
                self._transport.abort()

    def _together(self) -> bytes:
        first = self._out.popleft()
        if not self._out or len(first) + len(self._out[0]) > MOST_TOGETHER:
            return first
        frames, size = [first], len(first)
        while self._out and size + len(self._out[0]) <= MOST_TOGETHER:
            frames.append(self._out.popleft())
            size += len(frames[-1])
        return b"".join(frames)
