"""Brokers on loopback, all in one event loop, linked as a tree."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from cubecast.api.node import Node
from support.ports import free_addresses

BINARY_7 = "0-1 0-2 1-3 1-4 2-5 2-6"


def settings(links: str, faults: int = 1, **parameters: object) -> dict[str, Any]:
    """What all brokers of a tree have in common."""
    ids = sorted({int(one) for link in links.split() for one in link.split("-")}) or [0]
    peers = dict(zip(ids, free_addresses(len(ids)), strict=True))
    chosen = {"links": links, "faults": faults} | parameters
    return {
        "protocol": "locaps",
        "peers": peers,
        "dimension": 6,
        "parameters": {name: str(value) for name, value in chosen.items()},
    }


@asynccontextmanager
async def brokers(links: str, faults: int = 1, **parameters: object) -> AsyncIterator[dict[int, Node]]:
    shared = settings(links, faults, **parameters)
    async with AsyncExitStack() as stack:
        nodes: dict[int, Node] = {}
        for node in shared["peers"]:
            nodes[node] = await stack.enter_async_context(Node(node=node, **shared))
        yield nodes
