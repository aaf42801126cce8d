"""A node's HTTP server, in the node's own event loop. Off unless it is asked for.

Every area is a function that gives the routes of a node; `AREAS` is where it is registered.
"""

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aiohttp import web

from cubecast.addresses import Address
from cubecast.errors import BadInput
from cubecast.net.links.listener import UnauthenticatedCaller
from cubecast.net.settings.security import Limits
from cubecast.net.web import metrics
from cubecast.net.web.access import Callers, Gate
from cubecast.net.web.observer import WatchedNode
from cubecast.net.web.routes import answers_routes, browser_routes, health_routes, journal_routes, trace_routes

if TYPE_CHECKING:
    from cubecast.net.links.listener import TlsListener
    from cubecast.net.links.tls import Pages

AREAS: tuple[Callable[[WatchedNode], list[web.RouteDef]], ...] = (
    health_routes,
    answers_routes,
    metrics.routes,
    trace_routes,
    journal_routes,
    browser_routes,
)

MOST_BODY = 64 << 10
"""Bytes a request may bring along."""
CLOSING_TIME = 1.0
"""Seconds that answers under way get when the node closes."""
KEPT_FOR = 15.0
"""Seconds for which a connection is kept for the next request."""
WITHOUT_TLS = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"this node serves its pages over TLS only: say https\n"
)
SERVER = "cubecast"
"""What answers call the server: which versions of what it is made of is not for callers."""
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


log = logging.getLogger(__name__)


class _Handler(web.RequestHandler):
    """One connection. What goes wrong is a line of the node's log, and what a caller did wrong no traceback."""

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("a request failed: %s %s", request.method, request.path, exc_info=exc)
            message = "this node made a mistake, and has logged it"
        else:
            log.info("not understood: %s", message or exc, extra={"client": request.remote})
        answer = web.Response(
            status=status, text=f"{message or 'bad request'}\n", headers={"Server": SERVER, **HEADERS}
        )
        answer.force_close()
        return answer


async def _named(_: web.Request, answer: web.StreamResponse) -> None:
    answer.headers["Server"] = SERVER


class WebServer:
    """Make it, `await open()`, `await close()`."""

    def __init__(self, node: WatchedNode, address: Address, *, tls: "Pages | None" = None) -> None:
        self._asked = address
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | TlsListener | None = None
        self._handshakes = node.security.handshakes
        self._limits: Callable[[], Limits] = lambda: node.config.limits
        self.callers = Callers(
            self._limits,
            lambda: node.config.max_clients + node.config.limits.unauthenticated,
            lambda kind, detail: node.notice(kind, None, detail),
        )
        self.address = address
        self.gate = Gate(address, lambda: node.security.policy)
        self._app = web.Application(middlewares=[self._guarded], client_max_size=MOST_BODY)
        self._app.on_response_prepare.append(_named)
        for routes in AREAS:
            self._app.add_routes(routes(node))

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://{self.address}"

    async def open(self) -> Address:
        """Listen; where."""
        runner = web.AppRunner(
            self._app,
            handle_signals=False,
            shutdown_timeout=CLOSING_TIME,
        )
        await runner.setup()
        asked = self._asked
        try:
            port = await self._listen(runner)
        except OSError as error:
            await runner.cleanup()
            reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened: {error.strerror or error}"
            raise BadInput(f"address {asked} {reason}; choose another one with --http") from None
        self._runner = runner
        self.address = Address(asked.host, port)
        return self.address

    async def _listen(self, runner: web.AppRunner) -> int:
        """The port."""
        http: Any = runner.server  # its type does not say what it makes

        loop = asyncio.get_running_loop()

        def protocol(known: UnauthenticatedCaller | None = None) -> asyncio.Protocol:
            handler = _Handler(http, loop=loop, logger=log, access_log=None, keepalive_timeout=KEPT_FOR)  # type: ignore[arg-type]
            return self.callers.arriving(handler, lambda: len(http.connections), known)

        if self._tls is not None:
            from cubecast.net.links.listener import TlsListener  # as in `Reception`

            self._server = TlsListener(
                self._tls,
                self.callers.unauthenticated,
                self._handshakes,
                protocol,
                lambda detail: self.callers.on_refused("refused", detail),
                without_tls=WITHOUT_TLS,
            )
            return await self._server.open(self._asked)
        server = await asyncio.get_running_loop().create_server(protocol, self._asked.host, self._asked.port)
        self._server = server
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self.callers.spoke(request.protocol)
        self.gate.check(request)
        answer = await handler(request)
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer
