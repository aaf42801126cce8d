"""Who may ask what over HTTP: the one place where a request is authorised.

The node's policy is asked, with `Authorization: Bearer TOKEN`: looking at a node and switching are for its admins.
Without a policy everybody who reaches the address may look and switch, which is why the address is loopback unless it
is asked for otherwise. What holds in any case: a page of another origin that a browser shows is not the operator's
wish.
"""

from collections.abc import Callable
from enum import Enum

from aiohttp import web

from cubecast.addresses import Address
from cubecast.errors import NotAuthenticated, NotPermitted
from cubecast.escaping import visible
from cubecast.net.security.credentials import Token
from cubecast.net.security.policy import OPEN as OPEN_POLICY
from cubecast.net.security.policy import Policy
from cubecast.net.security.principal import Action, Principal
from cubecast.net.settings.exposure import is_loopback, split_origin
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
