"""The policy, asked over HTTP: `Authorization: Bearer TOKEN`. Looking at a node and switching are for its admins."""

from aiohttp import web

from cubecast.errors import NotAuthenticated, NotPermitted
from cubecast.net.security.credentials import Token
from cubecast.net.security.policy import Policy
from cubecast.net.security.principal import Action, Principal
from cubecast.net.web.access import Need

BEARER = "bearer "


def principal_of(policy: Policy, request: web.Request) -> Principal:
    """Raises NotAuthenticated."""
    given = request.headers.get("Authorization", "")
    bears = given[: len(BEARER)].lower() == BEARER
    return policy.authenticate(Token(given[len(BEARER) :].strip()) if bears else None)


def decide(policy: Policy, request: web.Request, need: Need) -> str | None:
    """Why the request is refused, None when it is not."""
    if need is Need.NOTHING:
        return None
    try:
        principal_of(policy, request).check(Action.ADMIN)
    except (NotAuthenticated, NotPermitted) as error:
        return str(error)
    return None
