"""A page that can import the client's modules, with a node without a protocol behind it."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web

from support.bus import Bus
from support.websockets import endpoint

UNITS = Path(__file__).parent / "units"


@pytest.fixture(scope="module")
def unit_page(chromium):
    stack = AsyncExitStack()

    async def main():
        node = await stack.enter_async_context(endpoint(Bus(), routes=[web.static("/units", UNITS)]))
        return await stack.enter_async_context(chromium.page(f"{node.origin}/chat"))

    yield chromium.run(main())
    chromium.run(stack.aclose())
