"""Questions to another node's HTTP server, for the command line."""

import asyncio
from http import HTTPStatus
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
    said = await ask(address, f"/trace?{urlencode(query)}", timeout, login, post=b"")
    if not isinstance(said, dict):
        raise BadInput(f"{address} refuses: {said.decode(errors='replace').strip()}")
    if "error" in said:
        raise BadInput(f"{address} refuses: {said['error']}")
    return said


async def journals_of(address: Address, timeout: float, login: Login = NOTHING) -> dict[str, Any]:
    """`node`, and `journals`: the names of what it and its earlier lives wrote, with their lengths."""
    said = await ask(address, "/trace/journals", timeout, login)
    if not isinstance(said, dict) or "journals" not in said:
        raise BadInput(f"{address}: {said.decode(errors='replace').strip() if isinstance(said, bytes) else said}")
    return said


async def journal_behind(address: Address, name: str, begin: int, timeout: float, login: Login = NOTHING) -> bytes:
    """The next bytes of a journal."""
    said = await ask(address, f"/trace/journal?{urlencode({'name': name, 'from': begin})}", timeout, login)
    if not isinstance(said, bytes):
        raise BadInput(f"{address}: {said}")
    return said


async def leave_verdict(address: Address, verdict: bytes, timeout: float, login: Login = NOTHING) -> None:
    await ask(address, "/trace/verdict", timeout, login, post=verdict)


async def ask(
    address: Address, path: str, timeout: float, login: Login, *, post: bytes | None = None
) -> dict[str, Any] | bytes:
    """What is JSON as an object, anything else as it is."""
    reason = login.objection(address)
    if reason is not None:
        raise BadInput(f"{address}: {reason}")
    token, context = login.read_token(), login.web_context(address)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    where = f"{'http' if context is None else 'https'}://{address}{path}"
    try:
        async with (
            asyncio.timeout(timeout),
            aiohttp.ClientSession(headers=headers) as session,
            session.request("GET" if post is None else "POST", where, data=post, ssl=context or True) as answer,
        ):
            if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:  # not yet, or by mistake: another time it may
                raise CubecastError(f"{address}: {(await answer.text()).strip()}")
            if answer.content_type == "application/json":
                said: dict[str, Any] = await answer.json()
                return said
            data = await answer.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise CubecastError(f"{address} does not answer: {error or 'no answer in time'}") from None
    if answer.status != HTTPStatus.OK:
        raise BadInput(f"{address} refuses: {data.decode(errors='replace').strip()}")
    return data
