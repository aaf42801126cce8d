"""Live nodes on loopback, all in one event loop."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from cubecast.api.node import Node

CUBE = {"round_length": 0.05, "retry": 0.1}
"""What only the users' protocol reads."""
FAST = {**CUBE, "patience": 30.0, "dimension": 3}
"""Times for a machine that talks to itself. Who is slow because the machine is busy is not taken for dead; where
somebody falls silent, or comes back alone, a test chooses a `patience` of its own, and a `round_length` by which no
machine is late all the time: rounds that come late suspect nobody."""


@asynccontextmanager
async def cluster(size: int, **options: Any) -> AsyncIterator[list[Node]]:
    async with AsyncExitStack() as stack:
        nodes: list[Node] = []
        settings = {key: value for key, value in FAST.items() if "protocol" not in options or key not in CUBE} | options
        for _ in range(size):
            join = [nodes[0].address] if nodes else []
            nodes.append(await stack.enter_async_context(Node(join=join, **settings)))
        yield nodes
