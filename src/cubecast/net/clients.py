"""All thin clients of a node, whatever their frames travel in."""

import logging
from collections.abc import Callable

from cubecast.errors import RemoteProtocolError
from cubecast.net.connection import Connection
from cubecast.net.gateway import Gateway, Link
from cubecast.net.handshake import Accepted, ClientGreeting, Refused, encode
from cubecast.net.port import Port

log = logging.getLogger(__name__)


class Clients:
    """Takes the connections of clients over from the door."""

    def __init__(self, port: Port, answer: Callable[[], Accepted | None], *, most: int, budget: int) -> None:
        """`answer` says who this node is and whom it knows, or None while it is not ready."""
        self._answer, self._most, self.budget = answer, most, budget
        self._gateways: dict[Link, Gateway] = {}
        self._closed = False
        self.port_for: Callable[[ClientGreeting], Port | Refused] = lambda _: port
        """Hook: what a client may use of the port, by what its greeting proves; or why it is sent away."""
        self.on_cut: Callable[[str, str], None] = lambda kind, detail: None
        """Told of clients that were sent away, for those who observe."""

    def accept(self, connection: Connection, greeting: ClientGreeting) -> Refused | None:
        gateway = self.admit(connection, greeting)
        if isinstance(gateway, Refused):
            return gateway
        connection.budget = self.budget
        connection.on_room = lambda _: gateway.on_room()
        connection.take_over(lambda _, frames: gateway.on_frames(frames), self.left)
        return None

    def admit(
        self, link: Link, greeting: ClientGreeting, serve: Callable[[Port, Link], Gateway] = Gateway
    ) -> Gateway | Refused:
        """A gateway for the link, which was told so; whoever owns the link brings it frames and says when it `left`."""
        if self._closed:
            return Refused("this node is leaving", retry=True)
        answer = self._answer()
        if answer is None:
            return Refused("this node is not ready yet", retry=True)
        if len(self._gateways) >= self._most:
            return Refused(f"this node serves {self._most} clients already", retry=True)
        port = self.port_for(greeting)
        if isinstance(port, Refused):
            return port
        link.label = f"{greeting.name or 'client'} at {link.label}"
        link.send(encode(answer))
        gateway = self._gateways[link] = serve(port, link)
        return gateway

    def left(self, link: Link, error: Exception | None) -> None:
        self._gateways.pop(link).close()
        log.info("a client left: %s", error or "closed", extra={"client": link.label})
        if isinstance(error, RemoteProtocolError):
            self.on_cut("refused-frame", f"{link.label}: {error}")
        elif isinstance(error, ConnectionAbortedError):
            self.on_cut("client-cut", f"{link.label}: {error}")

    def reconfigure(self, *, most: int, budget: int) -> None:
        """Who is there stays, under the new budget."""
        self._most, self.budget = most, budget
        for link in self._gateways:
            link.budget = budget

    def __len__(self) -> int:
        return len(self._gateways)

    def close(self) -> None:
        """Let them go; they will look for another node, and nobody comes instead."""
        self._closed = True
        for link in list(self._gateways):
            link.close()
