"""Thin clients in browsers: the gateway's own messages, one WebSocket message each, after the same greeting.

A browser has no other way to open a connection, and WebSocket does what `framing` does elsewhere: it cuts the stream
into frames. So everything above it is the same code as for every thin client.
"""

import asyncio
import logging
from functools import partial
from typing import Any

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from msgspec import structs

from cubecast.errors import RemoteProtocolError
from cubecast.net.clients import Clients
from cubecast.net.framing import MAX_FRAME
from cubecast.net.gateway import FULL_FOR, Gateway
from cubecast.net.handshake import ClientGreeting, Refused, decode_opening, encode, objection
from cubecast.net.origins import Origins
from cubecast.net.web.websocket_link import MOST_TOGETHER, WebSocketLink

log = logging.getLogger(__name__)

GREETING_TIME = 5.0
"""Seconds a page has to say who it is."""
MAX_STRANGERS = 256
"""WebSockets that have not said who they are."""
HEARTBEAT = 10.0
"""Seconds between pings; a browser answers them itself, whatever its page does, and has half of that time."""
CLOSING_TIME = 2.0
SILENT_FOR = 300.0
"""Seconds without a word of the page: browsers let hidden pages speak once a minute. Pings tell earlier who is dead."""


class WebSockets:
    def __init__(self, clients: Clients, cluster: str, origins: Origins, *, full_for: float = FULL_FOR) -> None:
        self._clients, self._cluster, self._origins = clients, cluster, origins
        self._serve = partial(Gateway, full_for=full_for, silent_for=SILENT_FOR)
        self._strangers = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        reason = self._origins.objection(request.headers.get("Origin"), request.host)
        if reason is not None:
            return web.Response(status=403, text=reason + "\n")
        if self._strangers >= MAX_STRANGERS:
            return web.Response(status=503, text="too many callers that do not say who they are\n")
        socket = web.WebSocketResponse(
            timeout=CLOSING_TIME,
            heartbeat=HEARTBEAT,
            compress=False,
            max_msg_size=MAX_FRAME,
            writer_limit=MOST_TOGETHER,
        )
        await socket.prepare(request)
        link = WebSocketLink(socket, request, self._clients.budget)
        self._strangers += 1
        try:
            greeting = await self._greeting(socket, link)
        finally:
            self._strangers -= 1
        if greeting is not None:
            await self._admit(socket, link, greeting)
        return socket

    async def _greeting(self, socket: web.WebSocketResponse, link: WebSocketLink) -> ClientGreeting | None:
        """The first message; None when there is none worth an answer."""
        try:
            async with asyncio.timeout(GREETING_TIME):
                opening = decode_opening(_frame(await socket.receive()))
        except TimeoutError:
            await link.hang_up(WSCloseCode.POLICY_VIOLATION, "it did not greet in time")
        except RemoteProtocolError as error:
            await link.hang_up(WSCloseCode.PROTOCOL_ERROR, str(error))
        else:
            if isinstance(opening, ClientGreeting):
                return opening
            await link.hang_up(WSCloseCode.POLICY_VIOLATION, "nodes do not come this way")
        return None

    async def _admit(self, socket: web.WebSocketResponse, link: WebSocketLink, greeting: ClientGreeting) -> None:
        # A page that came from this node need not know the cluster's name.
        known = structs.replace(greeting, cluster=greeting.cluster or self._cluster)
        answer = objection(known, self._cluster) or self._clients.admit(link, greeting, self._serve)
        if isinstance(answer, Refused):
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
        """Until the browser leaves, this side ends it, or somebody breaks the rules."""

        async def read() -> None:
            async for message in socket:
                gateway.on_frames([_frame(message)])

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
