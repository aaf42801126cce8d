"""Who may ask what over HTTP: the one place where a request is authorised.

The node's policy is asked, with `Authorization: Bearer TOKEN`: looking at a node and switching are for its admins.
Without a policy everybody who reaches the address may look and switch, which is why the address is loopback unless it
is asked for otherwise. What holds in any case: a page of another origin that a browser shows is not the operator's
wish.
"""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import cast

from aiohttp import web

from cubecast.addresses import Address
from cubecast.errors import NotAuthenticated, NotPermitted
from cubecast.escaping import visible
from cubecast.net.links.listener import UnauthenticatedCaller, UnauthenticatedCallers
from cubecast.net.security.credentials import Token
from cubecast.net.security.policy import OPEN as OPEN_POLICY
from cubecast.net.security.policy import Action, Policy, Principal
from cubecast.net.settings.security import Limits, is_loopback, split_origin
from cubecast.net.web import pages

WEBSOCKET = "/ws"
"""Decides itself: which pages may come is a setting, and who the client is stands in the first message."""
OPEN = frozenset({"/healthz", "/readyz", WEBSOCKET}) | pages.paths()
"""Asked by machines that hold no secrets and browsers that say later who uses them; the answers hold none either."""
FOR_ANY_PAGE = frozenset({WEBSOCKET, *(f"/{name}" for name in pages.FOR_ANY_PAGE)})
"""What pages of other origins may ask for."""
READING = ("GET", "HEAD")
JOURNALS = frozenset({"/trace/journals", "/trace/journal"})
"""They tell who sent what when, and the headers of messages: more than a principal who may look at pages is to know."""


class Need(Enum):
    """What a request asks for."""

    NOTHING = "nothing"
    LOOK = "look"
    ADMIN = "admin"


def need_of(request: web.Request) -> Need:
    if request.path in OPEN:
        return Need.NOTHING
    return Need.LOOK if request.method in READING and request.path not in JOURNALS else Need.ADMIN


BEARER = "bearer "


def principal_of(policy: Policy, request: web.Request) -> Principal:
    """Raises NotAuthenticated."""
    given = request.headers.get("Authorization", "")
    bears = given[: len(BEARER)].lower() == BEARER
    return policy.authenticate(Token(given[len(BEARER) :].strip()) if bears else None)


class Gate:
    def __init__(self, address: Address, policy: Callable[[], Policy] = lambda: OPEN_POLICY) -> None:
        """`policy` is the one in force now."""
        self._is_local = is_loopback(address.host)
        self._policy = policy

    def check(self, request: web.Request) -> None:
        """Raises the answer when the request may not go on."""
        host = split_origin(f"//{request.host}").hostname or ""
        if self._is_local and not is_loopback(host):
            # A foreign name that was made to point here, so that a browser takes us for its page's own server.
            raise web.HTTPForbidden(text=f"this node serves loopback only and is not called {visible(host)}\n")
        origin = request.headers.get("Origin")
        is_foreign = origin is not None and split_origin(origin).netloc != request.host
        if is_foreign and request.path not in FOR_ANY_PAGE:
            raise web.HTTPForbidden(text="this page belongs to somebody else\n")
        reason = self.decide(request, need_of(request))
        if reason is not None:
            raise web.HTTPUnauthorized(text=f"{reason}\n", headers={"WWW-Authenticate": "Bearer"})

    def decide(self, request: web.Request, need: Need) -> str | None:
        """Why the request is refused, None when it is not."""
        if need is Need.NOTHING:
            return None
        try:
            principal_of(self._policy(), request).check(Action.ADMIN)
        except (NotAuthenticated, NotPermitted) as error:
            return str(error)
        return None


# Who has connected to the HTTP server and asked for nothing yet: few at a time, and not for long.
#
# The server itself waits for a request for ever, and lets anybody keep as many connections as they like. Who is
# connected costs the node a socket, of which its peers and clients need some, too.


class Callers:
    """`limits` and `most`, connections in all, are asked for again: both may change while the node lives."""

    def __init__(
        self, limits: Callable[[], Limits], most: Callable[[], int], on_refused: Callable[[str, str], None]
    ) -> None:
        """`on_refused` is told of callers that were sent away."""
        self._limits, self._most = limits, most
        self.unauthenticated = UnauthenticatedCallers(limits())
        self._silent: dict[asyncio.BaseProtocol, UnauthenticatedCaller] = {}
        self.on_refused = on_refused

    def arriving(
        self, handler: asyncio.Protocol, count: Callable[[], int], known: UnauthenticatedCaller | None = None
    ) -> asyncio.Protocol:
        """For a connection that the handler is to have; `count` says how many there are. `known` since before its TLS
        handshake."""
        return _Arriving(handler, lambda transport: self._came(handler, transport, count(), known))

    def reconfigure(self) -> None:
        self.unauthenticated.limits = self._limits()

    def spoke(self, handler: asyncio.BaseProtocol) -> None:
        """It asked for something."""
        caller = self._silent.pop(handler, None)
        if caller is not None:
            self.unauthenticated.leave(caller)

    def _came(
        self, handler: asyncio.Protocol, transport: asyncio.Transport, count: int, known: UnauthenticatedCaller | None
    ) -> None:
        peer = transport.get_extra_info("peername")
        host = str(peer[0]) if peer else ""

        def abort(reason: str) -> None:
            self.spoke(handler)
            if not transport.is_closing():
                self.on_refused("refused", f"{host}: {reason}")
                transport.abort()

        if known is not None:
            known.abort = abort
            self._silent[handler] = known
        if count > self._most():
            abort(f"{self._most()} connections to the pages of this node are open already")
            return
        if known is None:
            caller = self.unauthenticated.arrive(host, abort)
            if not transport.is_closing():
                self._silent[handler] = caller


class _Arriving(asyncio.Protocol):
    """Sees the connection come, and leaves it to the handler."""

    def __init__(self, handler: asyncio.Protocol, came: Callable[[asyncio.Transport], None]) -> None:
        self._handler, self._came = handler, came

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast(asyncio.Transport, transport)
        stream.set_protocol(self._handler)
        self._handler.connection_made(stream)
        self._came(stream)
