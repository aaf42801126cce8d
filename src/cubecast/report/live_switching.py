"""Tracing switched on and off at several living nodes."""

from collections.abc import Sequence
from typing import Any

from cubecast.net.links.login import NOTHING, Login
from cubecast.net.web.asking import http_address, switch_trace
from cubecast.report.live_asking import Connect


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
