"""Thin clients in browsers: the gateway's own messages, one WebSocket message each, after the same greeting.

A browser has no other way to open a connection, and WebSocket does what `framing` does elsewhere: it cuts the stream
into frames. So everything above it is the same code as for every thin client. Follows decision 0025.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from msgspec import structs

from cubecast.errors import RemoteProtocolError
from cubecast.net.gateway.clients import Clients
from cubecast.net.gateway.gateway import FULL_FOR, Gateway
from cubecast.net.links.connection import FULL_ABOVE, ROOM_BELOW, Traffic
from cubecast.net.links.handshake import (
    NOT_READY,
    Challenge,
    ClientGreeting,
    Refused,
    decode_opening,
    encode,
    objection,
)
from cubecast.net.links.listener import UnauthenticatedCallers
from cubecast.net.members.security import admit
from cubecast.net.security.policy import Policy
from cubecast.net.settings.fields import MAX_FRAME
from cubecast.net.settings.security import Limits, Origins

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


log = logging.getLogger(__name__)

HEARTBEAT = 10.0
"""Seconds between pings; a browser answers them itself, whatever its page does, and has half of that time."""
CLOSING_TIME = 2.0
SILENT_FOR = 300.0
"""Seconds without a word of the page: browsers let hidden pages speak once a minute. Pings tell earlier who is dead."""


class WebSockets:
    """`policy` and `limits` are asked for each time, since both may change while the node lives.

    `on_refused` is told of callers that were sent away."""

    def __init__(
        self,
        clients: Clients,
        cluster: str,
        origins: Origins,
        policy: Callable[[], Policy],
        limits: Callable[[], Limits],
        on_refused: Callable[[str, str], None] = lambda kind, detail: None,
        *,
        full_for: float = FULL_FOR,
    ) -> None:
        self._clients, self._cluster, self._origins = clients, cluster, origins
        self._policy, self._limits, self._full_for = policy, limits, full_for
        self._unauthenticated = UnauthenticatedCallers(limits())
        self._on_refused = on_refused

    async def handle(self, request: web.Request) -> web.StreamResponse:
        reason = self._origins.objection(request.headers.get("Origin"), request.host)
        if reason is not None:
            log.warning("refused a WebSocket to a page at %s: %s", request.remote, reason)
            self._on_refused("refused", f"{request.remote}: {reason}")
            return web.Response(status=403, text=reason + "\n")
        socket = web.WebSocketResponse(
            timeout=CLOSING_TIME,
            heartbeat=HEARTBEAT,
            compress=False,
            max_msg_size=MAX_FRAME,
            writer_limit=MOST_TOGETHER,
        )
        await socket.prepare(request)
        link = WebSocketLink(socket, request, self._clients.budget)
        self._unauthenticated.limits = self._limits()
        caller = self._unauthenticated.arrive(link.host, link.abort)
        try:
            greeting = await self._greeting(socket, link)
        finally:
            self._unauthenticated.leave(caller)
        if greeting is not None:
            await self._admit(socket, link, greeting)
        return socket

    async def _greeting(self, socket: web.WebSocketResponse, link: WebSocketLink) -> ClientGreeting | None:
        """The first message; None when there is none worth an answer."""
        receiving = asyncio.create_task(socket.receive())
        waited: set[asyncio.Future[Any]] = {receiving, link.ended}
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if receiving.done():
                return self._opened(_frame(receiving.result()))
            await link.hang_up(WSCloseCode.POLICY_VIOLATION, link.ended.result())
        except RemoteProtocolError as error:
            self._on_refused("refused-frame", f"{link.label}: {error}")
            await link.hang_up(WSCloseCode.PROTOCOL_ERROR, str(error))
        finally:
            receiving.cancel()
        return None

    def _opened(self, frame: bytes) -> ClientGreeting:
        most = self._limits().first_frame
        if len(frame) > most:
            raise RemoteProtocolError(f"a greeting of {len(frame)} bytes; it has at most {most}")
        opening = decode_opening(frame)
        if not isinstance(opening, ClientGreeting):
            raise RemoteProtocolError("nodes do not come this way")
        # A page that came from this node need not know the cluster's name.
        return structs.replace(opening, cluster=opening.cluster or self._cluster)

    def _let_in(self, link: WebSocketLink, greeting: ClientGreeting) -> Gateway | Refused:
        visitor = objection(greeting, self._cluster) or admit(self._policy(), link, greeting)
        if isinstance(visitor, Challenge):
            return Refused("keys are for thin clients of other kinds; this way, show a token", retry=False)
        if isinstance(visitor, Refused):
            return visitor
        return self._clients.admit(link, greeting, visitor, full_for=self._full_for, silent_for=SILENT_FOR)

    async def _admit(self, socket: web.WebSocketResponse, link: WebSocketLink, greeting: ClientGreeting) -> None:
        answer = self._let_in(link, greeting)
        if isinstance(answer, Refused):
            kind = "early" if answer.reason == NOT_READY else "refused"
            self._on_refused(kind, f"{link.label}: {answer.reason}")
            await socket.send_bytes(encode(answer))
            code = WSCloseCode.TRY_AGAIN_LATER if answer.retry else WSCloseCode.POLICY_VIOLATION
            await link.hang_up(code, answer.reason)
            return
        link.on_room = answer.on_room
        error: Exception | None = None
        try:
            await self._converse(socket, link, answer)
            if link.was_cut:
                error = ConnectionAbortedError(link.ended.result())
        except (RemoteProtocolError, ConnectionError) as failure:
            error = failure
        finally:
            self._clients.left(link, error)
        await link.hang_up(*_farewell(error, link))

    async def _converse(self, socket: web.WebSocketResponse, link: WebSocketLink, gateway: Gateway) -> None:
        """Until the browser leaves, this side ends it, or either breaks the rules."""

        async def read() -> None:
            async for message in socket:
                gateway.on_frames([link.received(_frame(message))])
                await self._clients.slices.turn()  # what is there already is read without waiting for anything

        tasks = [asyncio.create_task(read()), asyncio.create_task(link.write())]
        waited: set[asyncio.Future[Any]] = {*tasks, link.ended}
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _frame(message: WSMessage) -> bytes:
    if message.type is WSMsgType.BINARY and isinstance(message.data, bytes):
        return message.data
    if message.type is WSMsgType.ERROR:
        raise RemoteProtocolError(f"no WebSocket message: {message.data}")
    raise RemoteProtocolError("a WebSocket message that is not binary" if message.type is WSMsgType.TEXT else "it left")


def _farewell(error: Exception | None, link: WebSocketLink) -> tuple[int, str]:
    if isinstance(error, RemoteProtocolError):
        return WSCloseCode.PROTOCOL_ERROR, str(error)
    if link.ended.done():
        return WSCloseCode.GOING_AWAY, link.ended.result()
    return WSCloseCode.OK, ""
