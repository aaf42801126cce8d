"""Nodes without a protocol: the real door for clients on loopback, with the ports of an imaginary cluster behind it."""

import asyncio

from cubecast.addresses import Address
from cubecast.net.gateway.clients import Clients
from cubecast.net.links.connection import Connection
from cubecast.net.links.handshake import (
    VERSION,
    Accepted,
    ClientGreeting,
    Place,
    Refused,
    decode_opening,
    encode,
    objection,
)
from support.bus import Bus, BusPort


class Door:
    """`await open()`; then clients may connect to `address`."""

    def __init__(self, bus: Bus, budget: int = 8 << 20) -> None:
        self.port: BusPort = bus.port()
        self.clients = Clients(self.port, self._who, most=4, budget=budget)
        self.others: list[Door] = []
        self._connections: list[Connection] = []

    async def open(self) -> Address:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, "127.0.0.1", 0)
        self.address = Address(*self._server.sockets[0].getsockname()[:2])
        return self.address

    def kill(self) -> None:
        """As if the process died."""
        self._server.close()
        for connection in self._connections:
            connection.abort("killed")

    def _who(self) -> Accepted:
        places = [Place(number, 0, b"", str(door.address)) for number, door in enumerate([self, *self.others])]
        return Accepted(VERSION, places[0], 3, places)

    def _connection(self) -> Connection:
        return Connection(on_open=self._connections.append, on_frames=self._greeted, on_lost=lambda *_: None)

    def _greeted(self, connection: Connection, frames: list[bytes]) -> None:
        opening = decode_opening(frames[0])
        connection.early = frames[1:]
        refusal = objection(opening, "cubecast")
        if refusal is None:
            assert isinstance(opening, ClientGreeting)
            refusal = self.clients.accept(connection, opening)
        if isinstance(refusal, Refused):
            connection.send(encode(refusal))
            connection.close()
