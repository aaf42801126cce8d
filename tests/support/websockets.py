"""The real WebSocket endpoint on loopback, with a port of an imaginary cluster behind it, and a plain client for it."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from cubecast.net.gateway.clients import Clients
from cubecast.net.gateway.messages import decode_from_node
from cubecast.net.gateway.messages import encode as encode_message
from cubecast.net.gateway.websocket import WebSockets
from cubecast.net.links.handshake import MAGIC, VERSION, Accepted, ClientGreeting, Place, decode_answer, encode
from cubecast.net.security.credentials import digest, new_token
from cubecast.net.security.policy import OPEN, Action, Known, Policy, Principal
from cubecast.net.settings.security import Limits, Origins
from cubecast.net.web import pages
from support.bus import Bus, BusPort

CLUSTER = "cubecast"


def readers_only() -> tuple[Policy, str]:
    """A policy that knows `reader`, who may subscribe and publish below `open` and nowhere else, and its token."""
    token = new_token("reader")
    grants = {Action.SUBSCRIBE: ["open.>"], Action.PUBLISH: ["open.>"]}
    known = {"reader": Known(Principal("reader", grants), tokens=(digest(token, CLUSTER),))}
    return Policy(CLUSTER, known), token


class Endpoint:
    """`url` is what a browser connects to; `port` has the knobs of the node behind it."""

    def __init__(self, bus: Bus, origins: tuple[str, ...] = (), most: int = 4, budget: int = 8 << 20, **limits: float):
        self.port: BusPort = bus.port()
        self.is_ready = True
        self.clients = Clients(self.port, self._who, most=most, budget=budget)
        self.policy, self.limits = OPEN, Limits()
        asked = (lambda: self.policy, lambda: self.limits)
        self.sockets = WebSockets(self.clients, CLUSTER, Origins(origins), *asked, **limits)
        self.app = web.Application()
        self.app.add_routes([web.get("/ws", self.sockets.handle), *pages.routes()])

    def _who(self) -> Accepted | None:
        place = Place(self.port._number, 0, b"", "nowhere:1")
        return Accepted(VERSION, place, 3, [place]) if self.is_ready else None

    async def open(self, number: int = 0) -> None:
        self._runner = web.AppRunner(self.app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", number).start()
        self.address = f"127.0.0.1:{self._runner.addresses[0][1]}"
        self.origin = f"http://{self.address}"
        self.url = f"{self.origin}/ws"

    async def close(self) -> None:
        self.clients.close()
        await self._runner.cleanup()


@asynccontextmanager
async def endpoint(
    bus: Bus | None = None, routes: Iterable[web.AbstractRouteDef] = (), **options: Any
) -> AsyncIterator[Endpoint]:
    one = Endpoint(bus or Bus(), **options)
    one.app.add_routes(routes)
    await one.open()
    try:
        yield one
    finally:
        await one.close()


def greeting(cluster: str = "", token: str | None = None, versions: tuple[int, int] = (VERSION, VERSION)) -> bytes:
    return encode(ClientGreeting(MAGIC, *versions, cluster, "test", token))


class Visitor:
    """A client that says exactly what the test wants it to say."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self._early: list[Any] = []

    async def say(self, *messages: Any) -> None:
        for message in messages:
            await self.socket.send_bytes(message if isinstance(message, bytes) else encode_message(message))

    async def answer(self) -> Any:
        return decode_answer(await self.socket.receive_bytes())

    async def hear(self) -> Any:
        """The gateway's next message; one WebSocket message may hold several."""
        if not self._early:
            self._early = [decode_from_node(one) for one in split(await self.socket.receive_bytes())]
        return self._early.pop(0)

    async def farewell(self) -> tuple[int | None, str]:
        """The code and reason the node hung up with; what it said before is passed over."""
        while True:
            message = await self.socket.receive()
            if message.type is aiohttp.WSMsgType.CLOSE:
                return message.data, message.extra or ""
            if message.type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR):
                return self.socket.close_code, ""


def split(data: bytes) -> list[bytes]:
    """MessagePack values that stand one after the other."""
    found, start = [], 0
    while start < len(data):
        end = _end(data, start)
        found.append(data[start:end])
        start = end
    return found


_LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}


def _end(data: bytes, at: int) -> int:
    """Where the value that begins here ends."""
    mark, at = data[at], at + 1
    if mark in _FIXED:
        return at + _FIXED[mark]
    if mark in _LENGTHS:
        size = _LENGTHS[mark]
        return at + size + int.from_bytes(data[at : at + size])
    if mark < 0x80 or mark >= 0xE0:
        return at
    if mark >= 0xA0 and mark < 0xC0:
        return at + (mark & 31)
    if mark in (0xDC, 0xDD, 0xDE, 0xDF):
        size = 2 if mark in (0xDC, 0xDE) else 4
        count, at = int.from_bytes(data[at : at + size]) << (mark >= 0xDE), at + size
    else:
        count = (mark & 15) << (mark < 0x90)
    for _ in range(count):
        at = _end(data, at)
    return at


@asynccontextmanager
async def visitor(one: Endpoint, opening: bytes | None = b"", **options: Any) -> AsyncIterator[Visitor]:
    """Connected; greeted and accepted unless another opening, or None, is asked for."""
    async with aiohttp.ClientSession() as session, session.ws_connect(one.url, max_msg_size=0, **options) as socket:
        guest = Visitor(socket)
        if opening is not None:
            await guest.say(opening or greeting())
        if opening == b"":
            assert isinstance(await guest.answer(), Accepted)
        yield guest
