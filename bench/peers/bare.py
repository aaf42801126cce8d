"""No messaging system: every member connected to every other over TCP, frames of one length, nothing kept, answered,
ordered or repeated. What Python and the machine cost by themselves, below which nothing built on them can be."""

import asyncio
from collections.abc import Callable
from multiprocessing.connection import Connection

from bench.peers.turns import Member
from cubecast.experiments.live_load.load import Load
from cubecast.net.links.loop import run


class Link(asyncio.Protocol):
    """One connection, read from; who opened it writes to it."""

    def __init__(self, size: int, deliver: Callable[[bytes], None]) -> None:
        self._size = size
        self._deliver = deliver
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        whole = len(data) - len(data) % self._size
        for begin in range(0, whole, self._size):
            self._deliver(data[begin : begin + self._size])
        self._rest = data[whole:]


class Mesh:
    def __init__(self, load: Load, number: int) -> None:
        self._size = load.size + 1
        self._number = number
        self._links: list[asyncio.Transport] = []
        self.port = 0

    async def connect(self, deliver: Callable[[bytes], None]) -> None:
        self._deliver = deliver
        self._server = await asyncio.get_running_loop().create_server(self._link, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def _link(self) -> Link:
        return Link(self._size, self._deliver)

    async def meet(self, ports: list[str]) -> None:
        loop = asyncio.get_running_loop()
        for number, port in enumerate(ports):
            if number != self._number:
                self._links.append((await loop.create_connection(self._link, "127.0.0.1", int(port)))[0])

    async def publish(self, messages: list[bytes]) -> None:
        block = b"".join(messages)
        for link in self._links:
            link.write(block)
        for message in messages:
            self._deliver(message)

    async def close(self) -> None:
        for link in self._links:
            link.close()
        self._server.close()


class BareMember(Member):
    def __init__(self, mesh: Mesh, load: Load, number: int, pipe: Connection) -> None:
        super().__init__(mesh, load, number, pipe)
        self._mesh = mesh

    async def introduce(self, address: str) -> list[str]:
        ports = await super().introduce(str(self._mesh.port))
        await self._mesh.meet(ports)
        return ports


def mesh(load: Load, number: int, pipe: Connection, join: str | None) -> None:
    run(BareMember(Mesh(load, number), load, number, pipe).main())
