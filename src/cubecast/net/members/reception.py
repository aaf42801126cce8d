"""Greets who connects and hands the connection on: to the peers, to who lets newcomers in, to the clients."""

import asyncio
import errno
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from cubecast.addresses import Address
from cubecast.errors import BadInput, RemoteProtocolError
from cubecast.net.links.connection import Connection
from cubecast.net.links.framing import framed
from cubecast.net.links.handshake import (
    NOT_READY,
    Accepted,
    Challenge,
    ClientGreeting,
    Greeting,
    JoinRequest,
    Opening,
    Refused,
    agreed,
    decode_opening,
    decode_proof,
    encode,
    objection,
    protocol_objection,
)
from cubecast.net.links.listener import UnauthenticatedCaller, UnauthenticatedCallers
from cubecast.net.members.directory import Directory
from cubecast.net.members.peers import Peers
from cubecast.net.members.security import OPEN_VISITOR, Security, Visitor, admit, prove
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.fields import MAX_FRAME

if TYPE_CHECKING:
    from cubecast.net.links.listener import TlsListener

log = logging.getLogger(__name__)

NO_TLS = "this node speaks TLS only: name the authority of its certificate with --tls-ca"


class Reception:
    def __init__(
        self,
        config: NodeConfig,
        directory: Directory,
        peers: Peers,
        security: Security,
        on_client: Callable[[Connection, ClientGreeting, Visitor], Refused | None],
        on_refused: Callable[[str, str], None],
    ) -> None:
        """`on_client` takes clients over, or says why not; `on_refused` is told of callers that were sent away."""
        self._config = config
        self._protocol = config.signature
        self._directory = directory
        self._peers = peers
        self._security = security
        self._server: asyncio.Server | TlsListener | None = None
        self._unauthenticated = UnauthenticatedCallers(config.limits)
        self._by_connection: dict[Connection, UnauthenticatedCaller] = {}
        self.address = config.listen
        self._on_client, self._on_refused = on_client, on_refused

    async def open(self) -> Address:
        """Listen; the address that others dial."""
        listen = self._config.listen
        try:
            port = await self._listen(listen)
        except OSError as error:
            reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened: {error.strerror or error}"
            raise BadInput(f"address {listen} {reason}; choose another one with --listen") from None
        except ValueError as error:
            raise BadInput(f"address {listen} is none: {error}; choose another one with --listen") from None
        self.address = self._config.advertise or Address(listen.host, port)
        return self.address

    async def _listen(self, listen: Address) -> int:
        if self._security.tls is not None:
            # Here, because it brings a library along that a node without TLS does without.
            from cubecast.net.links.listener import TlsListener

            self._server = TlsListener(
                self._security.tls,
                self._unauthenticated,
                self._security.handshakes,
                self._arriving,
                lambda detail: self._on_refused("refused", detail),
                without_tls=framed(encode(Refused(NO_TLS, retry=False))),
            )
            return await self._server.open(listen)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._arriving, listen.host, listen.port, backlog=1024)
        self._server = server
        port: int = server.sockets[0].getsockname()[1]
        return port

    def reconfigure(self, config: NodeConfig) -> None:
        self._config = config
        self._unauthenticated.limits = config.limits

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._unauthenticated.abort_all("this node closes")
            self._server = None

    @property
    def unauthenticated(self) -> int:
        """How many callers have not said who they are."""
        return len(self._unauthenticated)

    def _arriving(self, known: UnauthenticatedCaller | None = None) -> Connection:
        """`known` since before its TLS handshake."""

        def came(connection: Connection) -> None:
            if known is None:
                self._by_connection[connection] = self._unauthenticated.arrive(connection.host, connection.abort)
            else:
                known.abort = connection.abort
                self._by_connection[connection] = known

        config = self._config
        return Connection(
            on_open=came,
            on_frames=self._greeted,
            on_lost=self._left,
            budget=config.peer_budget,
            most=config.limits.first_frame,
        )

    def _left(self, connection: Connection, error: Exception | None) -> None:
        caller = self._by_connection.pop(connection, None)
        if caller is not None and self._unauthenticated.leave(caller):
            log.info("a caller left without a greeting: %s", error or "closed", extra={"client": connection.label})
            if isinstance(error, RemoteProtocolError):
                self._on_refused("refused-frame", f"{connection.label}: {error}")

    def _greeted(self, connection: Connection, frames: list[bytes]) -> None:
        caller = self._by_connection.get(connection)
        if caller is None:
            return  # refused already, and not gone yet
        visitor: Visitor | Refused = OPEN_VISITOR
        if caller.asked is not None:
            opening: Opening = caller.asked[0]
            visitor, refusal = prove(self._security.policy, caller, decode_proof(frames[0])), None
        else:
            opening = decode_opening(frames[0])
            refusal = objection(opening, self._config.cluster)
            if refusal is None and isinstance(opening, ClientGreeting):
                answer = admit(self._security.policy, connection, opening)
                if isinstance(answer, Challenge):
                    caller.asked = opening, answer
                    connection.send(encode(answer))
                    return
                visitor = answer
        del self._by_connection[connection]
        self._unauthenticated.leave(caller)
        connection.early = frames[1:]
        connection.allow_frames(MAX_FRAME)
        refusal = refusal or self._take(connection, opening, visitor)
        if refusal is not None:
            level = logging.INFO if refusal.retry else logging.WARNING
            log.log(level, "a caller was refused: %.200s", refusal.reason, extra={"client": connection.label})
            kind = "early" if refusal.reason == NOT_READY else "refused"
            self._on_refused(kind, f"{connection.label}: {refusal.reason}")
            connection.send(encode(refusal))
            connection.close()

    def _take(self, connection: Connection, opening: Opening, visitor: Visitor | Refused) -> Refused | None:
        match opening:
            case Greeting() | JoinRequest() if (other := protocol_objection(opening, self._protocol)) is not None:
                return other
            case Greeting():
                return self._security.objection(connection, opening) or self._peers.accept(connection, opening)
            case JoinRequest():
                return self._security.objection(connection, opening) or self._offer(connection, opening)
            case ClientGreeting():
                return self._on_client(connection, opening, visitor) if isinstance(visitor, Visitor) else visitor

    def _offer(self, connection: Connection, request: JoinRequest) -> Refused | None:
        me, now = self._directory.me, asyncio.get_running_loop().time()
        if me is None:
            return Refused(NOT_READY, retry=True)
        wanted = self._security.wanted(connection, request)
        offer = self._directory.offer(now, request.instance, wanted, request.attempt)
        if isinstance(offer, Refused):
            return offer
        places = self._directory.for_newcomers()
        connection.send(encode(Accepted(agreed(request), me, self._directory.dimension, places, offer)))
        connection.close()
        return None
