"""A connection says that it is full while it is being filled, and what is to leave at once does."""

import asyncio
import socket

import pytest

from cubecast.net.links.connection import FULL_ABOVE, Connection
from cubecast.net.links.framing import HEADER, Splitter, framed
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


async def connected() -> tuple[Connection, socket.socket]:
    """A connection, and the socket at its other end."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: Connection(on_open=lambda _: None, on_frames=lambda *_: None, on_lost=lambda *_: None), sock=ours
    )
    return connection, theirs


def test_what_leaves_at_once_is_there_in_the_same_turn_behind_what_was_queued():
    async def main():
        connection, theirs = await connected()
        with theirs:
            connection.send(b"first")
            connection.send_at_once(framed(b"second"))
            assert Splitter().feed(theirs.recv(1000)) == [b"first", b"second"]
            await asyncio.sleep(0)
            with pytest.raises(BlockingIOError):
                theirs.recv(1000)
            assert (connection.traffic.frames_out, connection.traffic.bytes_out) == (2, 2 * HEADER.size + 5 + 6)
            connection.close()

    run(main())


def test_what_finds_no_room_follows_in_order():
    async def main():
        connection, theirs = await connected()
        with theirs:
            frames = [number.to_bytes(4, "big") * 500 for number in range(2000)]
            for frame in frames:
                connection.send_at_once(framed(frame))
            assert connection.queued, "all of it found room, so nothing was tried"
            loop, splitter, heard = asyncio.get_running_loop(), Splitter(), []
            while len(heard) < len(frames):
                async with asyncio.timeout(30):
                    heard += splitter.feed(await loop.sock_recv(theirs, 1 << 16))
            assert heard == frames
            connection.close()

    run(main())


def test_nothing_leaves_past_a_connection_that_was_closed():
    async def main():
        connection, theirs = await connected()
        with theirs:
            connection.close()
            connection.send_at_once(framed(b"late"))
            async with asyncio.timeout(30):
                assert await asyncio.get_running_loop().sock_recv(theirs, 1000) == b""

    run(main())
