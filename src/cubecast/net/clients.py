"""All thin clients of a node."""

import logging
from collections.abc import Callable

from cubecast.errors import RemoteProtocolError
from cubecast.net.connection import Connection
from cubecast.net.gateway import Gateway
from cubecast.net.handshake import Accepted, ClientGreeting, Refused, encode
from cubecast.net.port import Port

log = logging.getLogger(__name__)


class Clients:
    """Takes the connections of clients over from the door."""

    def __init__(self, port: Port, answer: Callable[[], Accepted | None], *, most: int, budget: int) -> None:
        """`answer` says who this node is and whom it knows, or None while it is not ready."""
        self._port, self._answer, self._most, self._budget = port, answer, most, budget
        self._gateways: dict[Connection, Gateway] = {}
        self._closed = False
        self.on_cut: Callable[[str, str], None] = lambda kind, detail: None
        """Told of clients that were sent away, for those who observe."""

    def accept(self, connection: Connection, greeting: ClientGreeting) -> Refused | None:
        if self._closed:
            return Refused("this node is leaving", retry=True)
        answer = self._answer()
        if answer is None:
            return Refused("this node is not ready yet", retry=True)
        if len(self._gateways) >= self._most:
            return Refused(f"this node serves {self._most} clients already", retry=True)
        connection.label = f"{greeting.name or 'client'} at {connection.label}"
        connection.budget = self._budget
        connection.send(encode(answer))
        gateway = self._gateways[connection] = Gateway(self._port, connection)
        connection.on_room = lambda _: gateway.on_room()
        connection.take_over(lambda _, frames: gateway.on_frames(frames), self._left)
        return None

    def _left(self, connection: Connection, error: Exception | None) -> None:
        self._gateways.pop(connection).close()
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

    def __len__(self) -> int:
        return len(self._gateways)

    def close(self) -> None:
        """Let them go; they will look for another node, and nobody comes instead."""
        self._closed = True
        for connection in list(self._gateways):
            connection.close()
