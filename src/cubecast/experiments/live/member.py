"""A member's side of a live run: a node in this process, orders on standard input, events on standard output."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from cubecast.net.live_node import LiveNode

Order = Callable[[dict[str, Any]], Awaitable[None]]


def say(event: str, **details: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


async def obey(node: LiveNode, orders: dict[str, Order]) -> None:
    """Carry out orders, one after the other, until told to leave or until the supervisor is gone."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        order = json.loads(line)
        if order["do"] == "leave":
            await node.close()
            return
        await orders[order["do"]](order)
