"""Questions to another node's HTTP server, for the command line."""

import asyncio
from typing import Any
from urllib.parse import urlencode

import aiohttp

from cubecast.addresses import Address
from cubecast.errors import BadInput, CubecastError
from cubecast.net.links.login import NOTHING, Login
from cubecast.net.settings.config import ANYWHERE


def http_address(told: str | None, asked: str) -> Address:
    """Where a node serves HTTP, from what it says of itself and the address it was asked at."""
    if told is None:
        raise BadInput(f"the node at {asked} serves no HTTP; start it with --http")
    address = Address.parse(told)
    return address._replace(host=Address.parse(asked).host) if address.host in ANYWHERE else address


async def switch_trace(address: Address, run: str | None, timeout: float, login: Login = NOTHING) -> dict[str, Any]:
    """Switch a node's trace on under a name, or, None, off; what it says. BadInput with its reason when it refuses."""
    query = {"on": "false"} if run is None else {"on": "true", "run": run}
    reason = login.objection(address)
    if reason is not None:
        raise BadInput(f"{address}: {reason}")
    token, context = login.read_token(), login.web_context(address)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    where = f"{'http' if context is None else 'https'}://{address}/trace?{urlencode(query)}"
    try:
        async with (
            asyncio.timeout(timeout),
            aiohttp.ClientSession(headers=headers) as session,
            session.post(where, ssl=context or True) as answer,
        ):
            if answer.content_type != "application/json":
                raise BadInput(f"{address} refuses: {(await answer.text()).strip()}")
            said: dict[str, Any] = await answer.json()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise CubecastError(f"{address} does not answer: {error or 'no answer in time'}") from None
    if "error" in said:
        raise BadInput(f"{address} refuses: {said['error']}")
    return said
