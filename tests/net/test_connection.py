"""A connection says that it is full while it is being filled."""

import asyncio

from cubecast.net.connection import FULL_ABOVE, Connection
from support.running import run


class Deaf(asyncio.Transport):
    """Whoever is at its other end reads nothing."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection, self._size = connection, 0
        self.aborted = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high or 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._size += len(data)
        if self._size > self._high and not self._connection.is_full:
            self._connection.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self._size

    def abort(self) -> None:
        self.aborted = True


def test_much_in_one_turn_is_noticed_before_it_is_too_much():
    async def main():
        connection = Connection(on_open=lambda _: None, on_frames=lambda *_: None, on_lost=lambda *_: None)
        transport = Deaf(connection)
        connection.connection_made(transport)
        sent = 0
        while not connection.is_full:
            connection.send(bytes(100_000))
            sent += 100_000
            assert sent < 2 * FULL_ABOVE, "nobody could stop in time"
        assert not transport.aborted and connection.queued < 2 * FULL_ABOVE
        await asyncio.sleep(0)
        assert connection.queued < 2 * FULL_ABOVE, "nothing is written twice"

    run(main())
