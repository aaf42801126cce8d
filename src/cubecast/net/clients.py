"""All thin clients of a node."""

import logging
from collections.abc import Callable

from cubecast.errors import RemoteProtocolError
from cubecast.net.connection import Connection, Traffic
from cubecast.net.gateway import Gateway
from cubecast.net.handshake import Accepted, ClientGreeting, Refused, encode
from cubecast.net.port import Port
from cubecast.net.security.counted import Counted
from cubecast.net.security.door import OPEN_VISITOR, Visitor
from cubecast.net.security.guarded_port import GuardedPort
from cubecast.net.security.policy import Policy
from cubecast.net.security.settings import Limits

log = logging.getLogger(__name__)

MOST_NAME = 64
"""Characters of what a client calls itself."""


class Clients:
    """Takes the connections of clients over from the door."""

    def __init__(self, port: Port, answer: Callable[[], Accepted | None], *, most: int, budget: int) -> None:
        """`answer` says who this node is and whom it knows, or None while it is not ready."""
        self._port, self._answer, self._most, self._budget = port, answer, most, budget
        self._gateways: dict[Connection, Gateway] = {}
        self.traffic = Traffic()
        self._guarded: dict[Connection, tuple[Visitor, GuardedPort]] = {}
        self._places = Counted()
        self.limits = Limits()
        self._closed = False
        self.on_cut: Callable[[str, str], None] = lambda kind, detail: None
        """Told of clients that were sent away, for those who observe."""

    def accept(
        self, connection: Connection, greeting: ClientGreeting, visitor: Visitor = OPEN_VISITOR
    ) -> Refused | None:
        if self._closed:
            return Refused("this node is leaving", retry=True)
        answer = self._answer()
        if answer is None:
            return Refused("this node is not ready yet", retry=True)
        if len(self._gateways) >= self._most:
            return Refused(f"this node serves {self._most} clients already", retry=True)
        refusal = self._places.take(connection, visitor.principal, self.limits)
        if refusal is not None:
            return refusal
        connection.label = f"{self._name(greeting, visitor)} at {connection.label}"
        connection.budget, connection.traffic = self._budget, self.traffic
        connection.send(encode(answer))
        port = self._port_for(connection, visitor)
        rate = self.limits.requests_per_second
        gateway = self._gateways[connection] = Gateway(port, connection, requests_per_second=rate)
        connection.on_room = lambda _: gateway.on_room()
        connection.take_over(lambda _, frames: gateway.on_frames(frames), self._left)
        return None

    def _name(self, greeting: ClientGreeting, visitor: Visitor) -> str:
        """For people, and without what a client could write to mislead them."""
        said = "".join(one for one in greeting.name[:MOST_NAME] if one.isprintable()) or "client"
        return said if visitor.principal.is_unrestricted else f"{visitor.principal.name} ({said})"

    def _port_for(self, connection: Connection, visitor: Visitor) -> Port:
        if visitor.principal.is_unrestricted and not self.limits.restrict_clients:
            return self._port
        guarded = GuardedPort(self._port, visitor.principal, self.limits)
        self._guarded[connection] = visitor, guarded
        return guarded

    def renew(self, policy: Policy) -> None:
        """Who is not known any more has to go; others may do what the new policy grants them."""
        for connection, (visitor, guarded) in list(self._guarded.items()):
            principal = policy.renewed(visitor.principal, visitor.credentials)
            if principal is None:
                connection.abort("the new policy does not know it")
            else:
                guarded.renew(principal)

    def _left(self, connection: Connection, error: Exception | None) -> None:
        self._gateways.pop(connection).close()
        self._guarded.pop(connection, None)
        self._places.leave(connection)
        log.info("a client left: %s", error or "closed", extra={"client": connection.label})
        if isinstance(error, RemoteProtocolError):
            self.on_cut("refused-frame", f"{connection.label}: {error}")
        elif isinstance(error, ConnectionAbortedError):
            self.on_cut("client-cut", f"{connection.label}: {error}")

    def reconfigure(self, *, most: int, budget: int) -> None:
        """Who is there stays, under the new budget."""
        self._most, self._budget = most, budget
        for connection in self._gateways:
            connection.budget = budget

    @property
    def queued(self) -> list[int]:
        """Bytes that wait for each client to read."""
        return [connection.queued for connection in self._gateways]

    def __len__(self) -> int:
        return len(self._gateways)

    def close(self) -> None:
        """Let them go; they will look for another node, and nobody comes instead."""
        self._closed = True
        for connection in list(self._gateways):
            connection.close()
