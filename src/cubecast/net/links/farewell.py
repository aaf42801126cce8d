"""Saying why before hanging up.

The event loop drops what TLS has to say about a handshake that failed, so that the other side would see a connection
that breaks for no reason. The context given to the loop keeps these words, and they are sent through a second handle of
the socket. What the other side sent meanwhile is read: closing a socket with unread bytes would take the words back.
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

LINGER = 1.0
"""Seconds the other side has to take the words and hang up."""
MOST_READ = 1 << 20

_heard: ContextVar[list[bytes] | None] = ContextVar("heard", default=None)


class _Speaking(ssl.SSLObject):
    """Hands over what it has to say about a failed handshake."""

    outgoing: ssl.MemoryBIO
    heard: list[bytes] | None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self.heard is not None:
                self.heard.append(self.outgoing.read())
            raise


class SpeakingContext(ssl.SSLContext):
    """For servers; the words go to the `Words` that was made in the same task."""

    sslobject_class = _Speaking

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *options: Any, **named: Any) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, *options, **named)
        assert isinstance(made, _Speaking)
        made.outgoing, made.heard = outgoing, _heard.get()
        return made


class Words:
    """The last words to one caller. Make it in the task that begins the handshake, and `close` it in any case."""

    def __init__(self, caller: socket.socket) -> None:
        self._socket = caller.dup()
        self._socket.setblocking(False)
        self._heard: list[bytes] = []
        _heard.set(self._heard)

    async def say_what_tls_said(self) -> None:
        await self.say(b"".join(self._heard))

    async def say(self, words: bytes) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            async with asyncio.timeout(LINGER):
                await loop.sock_sendall(self._socket, words)
                self._socket.shutdown(socket.SHUT_WR)
                left = MOST_READ
                while left > 0 and (read := await loop.sock_recv(self._socket, 1 << 16)):
                    left -= len(read)

    def close(self) -> None:
        self._socket.close()
