"""The door: who calls is greeted and handed to whom it is for — peers, those who join, clients."""

import asyncio
import errno
import logging
from collections.abc import Callable

from cubecast.errors import BadInput, RemoteProtocolError
from cubecast.net.addresses import Address
from cubecast.net.config import NodeConfig
from cubecast.net.connection import Connection
from cubecast.net.directory import Directory
from cubecast.net.handshake import (
    VERSION,
    Accepted,
    ClientGreeting,
    Greeting,
    JoinRequest,
    Refused,
    decode_opening,
    encode,
    objection,
)
from cubecast.net.peers import Peers

log = logging.getLogger(__name__)

GREETING_TIME = 5.0
"""Seconds a caller has to say who it is."""
MAX_STRANGERS = 256
"""Connections that have not said who they are."""


class Reception:
    def __init__(self, config: NodeConfig, directory: Directory, peers: Peers) -> None:
        self._config = config
        self._directory = directory
        self._peers = peers
        self._server: asyncio.Server | None = None
        self._strangers: dict[Connection, asyncio.TimerHandle] = {}
        self.address = config.listen
        self.on_refused: Callable[[str, str], None] = lambda kind, detail: None
        """Told of callers that were sent away, for those who observe."""
        self.on_client: Callable[[Connection, ClientGreeting], Refused | None] = lambda connection, greeting: Refused(
            "this node takes no clients", retry=False
        )

    async def open(self) -> Address:
        """Listen; the address that others dial."""
        listen = self._config.listen
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._stranger, listen.host, listen.port, backlog=1024)
        except OSError as error:
            reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened: {error.strerror or error}"
            raise BadInput(f"address {listen} {reason}; choose another one with --listen") from None
        except ValueError as error:
            raise BadInput(f"address {listen} is none: {error}; choose another one with --listen") from None
        port = self._server.sockets[0].getsockname()[1]
        self.address = self._config.advertise or Address(listen.host, port)
        return self.address

    def reconfigure(self, config: NodeConfig) -> None:
        self._config = config

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            for connection in list(self._strangers):
                connection.abort("this node closes")
            self._server = None

    @property
    def strangers(self) -> int:
        """How many callers have not said who they are."""
        return len(self._strangers)

    def _stranger(self) -> Connection:
        return Connection(
            on_open=self._came, on_frames=self._greeted, on_lost=self._left, budget=self._config.peer_budget
        )

    def _came(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        self._strangers[connection] = loop.call_later(GREETING_TIME, connection.abort, "it did not greet in time")
        if len(self._strangers) > MAX_STRANGERS:
            # The one that has been silent for longest: who means to greet does it at once.
            silent = next(iter(self._strangers))
            self._strangers.pop(silent).cancel()
            silent.abort("too many callers that do not say who they are")

    def _left(self, connection: Connection, error: Exception | None) -> None:
        timer = self._strangers.pop(connection, None)
        if timer is not None:
            timer.cancel()
            log.info("a caller left without a greeting: %s", error or "closed", extra={"client": connection.label})
            if isinstance(error, RemoteProtocolError):
                self.on_refused("refused-frame", f"{connection.label}: {error}")

    def _greeted(self, connection: Connection, frames: list[bytes]) -> None:
        opening = decode_opening(frames[0])
        connection.early = frames[1:]
        self._strangers.pop(connection).cancel()
        refusal = objection(opening, self._config.cluster)
        if refusal is None:
            match opening:
                case Greeting():
                    refusal = self._peers.accept(connection, opening)
                case JoinRequest():
                    refusal = self._offer(connection, opening)
                case ClientGreeting():
                    refusal = self.on_client(connection, opening)
        if refusal is not None:
            level = logging.INFO if refusal.retry else logging.WARNING
            log.log(level, "a caller was refused: %s", refusal.reason, extra={"client": connection.label})
            self.on_refused("refused", f"{connection.label}: {refusal.reason}")
            connection.send(encode(refusal))
            connection.close()

    def _offer(self, connection: Connection, request: JoinRequest) -> Refused | None:
        me, now = self._directory.me, asyncio.get_running_loop().time()
        if me is None:
            return Refused("this node is not ready yet", retry=True)
        offer = self._directory.offer(now, request.instance, request.wanted, request.attempt)
        if isinstance(offer, Refused):
            return offer
        places = list(self._directory.places.values())
        connection.send(encode(Accepted(VERSION, me, self._directory.dimension, places, offer)))
        connection.close()
        return None
