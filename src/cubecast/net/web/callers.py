"""Who has connected to the HTTP server and asked for nothing yet: few at a time, and not for long.

The server itself waits for a request for ever, and lets anybody keep as many connections as they like. Who is connected
costs the node a socket, of which its peers and clients need some, too.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from cubecast.net.links.unauthenticated import Stranger, Strangers
from cubecast.net.settings.security import Limits


class Callers:
    """`limits` and `most`, connections in all, are asked for again: both may change while the node lives."""

    def __init__(
        self, limits: Callable[[], Limits], most: Callable[[], int], on_refused: Callable[[str, str], None]
    ) -> None:
        """`on_refused` is told of callers that were sent away."""
        self._limits, self._most = limits, most
        self.strangers = Strangers(limits())
        self._silent: dict[asyncio.BaseProtocol, Stranger] = {}
        self.on_refused = on_refused

    def arriving(
        self, handler: asyncio.Protocol, count: Callable[[], int], known: Stranger | None = None
    ) -> asyncio.Protocol:
        """For a connection that the handler is to have; `count` says how many there are. `known` since before its TLS
        handshake."""
        return _Arriving(handler, lambda transport: self._came(handler, transport, count(), known))

    def reconfigure(self) -> None:
        self.strangers.limits = self._limits()

    def spoke(self, handler: asyncio.BaseProtocol) -> None:
        """It asked for something."""
        stranger = self._silent.pop(handler, None)
        if stranger is not None:
            self.strangers.leave(stranger)

    def _came(
        self, handler: asyncio.Protocol, transport: asyncio.Transport, count: int, known: Stranger | None
    ) -> None:
        peer = transport.get_extra_info("peername")
        host = str(peer[0]) if peer else ""

        def abort(reason: str) -> None:
            self.spoke(handler)
            if not transport.is_closing():
                self.on_refused("refused", f"{host}: {reason}")
                transport.abort()

        if known is not None:
            known.abort = abort
            self._silent[handler] = known
        if count > self._most():
            abort(f"{self._most()} connections to the pages of this node are open already")
            return
        if known is None:
            stranger = self.strangers.arrive(host, abort)
            if not transport.is_closing():
                self._silent[handler] = stranger


class _Arriving(asyncio.Protocol):
    """Sees the connection come, and leaves it to the handler."""

    def __init__(self, handler: asyncio.Protocol, came: Callable[[asyncio.Transport], None]) -> None:
        self._handler, self._came = handler, came

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast(asyncio.Transport, transport)
        stream.set_protocol(self._handler)
        self._handler.connection_made(stream)
        self._came(stream)
