"""Asking several living nodes at once what they say about themselves, and switching their tracing on and off."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cubecast.api.connect import Connecting
from cubecast.errors import CubecastError
from cubecast.net.links.login import NOTHING, Login
from cubecast.net.web.asking import http_address, switch_trace

# Asking several living nodes at once what they say about themselves

GRACE = 1.0
"""Seconds a node gets to answer besides those to connect, which end with a reason."""
Connect = Callable[[str], Connecting]
"""A connection to the node at one address."""


@dataclass
class Said:
    """What came back, by the address that was asked."""

    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    """Why there is nothing from the others."""


async def ask_each(addresses: Iterable[str], connect: Connect, timeout: float) -> Said:
    """Every one a new connection: a client that lost its node would move and ask another one."""
    said, asked = Said(), list(dict.fromkeys(addresses))

    async def ask(address: str) -> None:
        try:
            async with asyncio.timeout(timeout), connect(address) as client:
                said.statuses[address] = await client.status()
        except (CubecastError, TimeoutError, OSError) as error:
            said.silent[address] = str(error) or f"no answer in {timeout:g} s; is a node running there?"

    await asyncio.gather(*map(ask, asked))
    said.statuses = {address: said.statuses[address] for address in asked if address in said.statuses}
    return said


# Tracing switched on and off at several living nodes


async def switch_each(
    nodes: Sequence[str], connect: Connect, timeout: float, run: str | None, login: Login = NOTHING
) -> list[dict[str, Any]]:
    """One after the other; the first that refuses ends it, with what was switched before left as it is."""
    done = []
    for node in nodes:
        async with connect(node) as client:
            status = await client.status()
        said = await switch_trace(http_address(status["http"], node), run, timeout, login)
        done.append({"node": status["node"], "address": node} | said)
    return done
