"""Thin clients in browsers: the gateway's own messages, one WebSocket message each, after the same greeting.

A browser has no other way to open a connection, and WebSocket does what `framing` does elsewhere: it cuts the stream
into frames. So everything above it is the same code as for every thin client. Follows decision 0025.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from msgspec import structs

from cubecast.errors import RemoteProtocolError
from cubecast.net.gateway.clients import Clients
from cubecast.net.gateway.gateway import FULL_FOR, Gateway
from cubecast.net.gateway.websocket_link import MOST_TOGETHER, WebSocketLink
from cubecast.net.links.handshake import (
    NOT_READY,
    Challenge,
    ClientGreeting,
    Refused,
    decode_opening,
    encode,
    objection,
)
from cubecast.net.links.unauthenticated import Strangers
from cubecast.net.members.admission import admit
from cubecast.net.security.policy import Policy
from cubecast.net.settings.bounds import MAX_FRAME
from cubecast.net.settings.exposure import Origins
from cubecast.net.settings.security import Limits

log = logging.getLogger(__name__)

HEARTBEAT = 10.0
"""Seconds between pings; a browser answers them itself, whatever its page does, and has half of that time."""
CLOSING_TIME = 2.0
SILENT_FOR = 300.0
"""Seconds without a word of the page: browsers let hidden pages speak once a minute. Pings tell earlier who is dead."""


class WebSockets:
    """`policy` and `limits` are asked for each time, since both may change while the node lives."""

    def __init__(
        self,
        clients: Clients,
        cluster: str,
        origins: Origins,
        policy: Callable[[], Policy],
        limits: Callable[[], Limits],
        *,
        full_for: float = FULL_FOR,
    ) -> None:
        self._clients, self._cluster, self._origins = clients, cluster, origins
        self._policy, self._limits, self._full_for = policy, limits, full_for
        self._strangers = Strangers(limits())
        self.on_refused: Callable[[str, str], None] = lambda kind, detail: None
        """Told of callers that were sent away, for those who observe."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        reason = self._origins.objection(request.headers.get("Origin"), request.host)
        if reason is not None:
            log.warning("refused a WebSocket to a page at %s: %s", request.remote, reason)
            self.on_refused("refused", f"{request.remote}: {reason}")
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
        self._strangers.limits = self._limits()
        stranger = self._strangers.arrive(link.host, link.abort)
        try:
            greeting = await self._greeting(socket, link)
        finally:
            self._strangers.leave(stranger)
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
            self.on_refused("refused-frame", f"{link.label}: {error}")
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
            self.on_refused(kind, f"{link.label}: {answer.reason}")
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
