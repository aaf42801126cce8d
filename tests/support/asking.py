"""Questions to a node over HTTP, in the test's own event loop."""

import json
from typing import Any

import aiohttp

from cubecast.addresses import Address
from cubecast.api.node import Node

HTTP = Address("127.0.0.1", 0)


async def ask(
    node: Node, path: str, *, method: str = "GET", headers: dict[str, str] | None = None, body: str | None = None
) -> tuple[int, str]:
    """(status, text)"""
    assert node._live.web is not None
    return await ask_at(str(node._live.web.address), path, method=method, headers=headers, body=body)


async def ask_at(
    address: str, path: str, *, method: str = "GET", headers: dict[str, str] | None = None, body: str | None = None
) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"http://{address}{path}", headers=headers, data=body) as answer,
    ):
        return answer.status, await answer.text()


async def ask_json(node: Node, path: str) -> Any:
    status, text = await ask(node, path)
    assert status == 200, text
    return json.loads(text)
