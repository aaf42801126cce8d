"""What goes wrong in a TLS handshake: said to the other side before hanging up, and in words for people."""

import asyncio
import socket
import ssl
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

_REASONS = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "HTTP_REQUEST": "it speaks HTTP, not TLS",
    "UNSUPPORTED_PROTOCOL": "it speaks no TLS as new as 1.3",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks no TLS as new as 1.3",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it asks for a certificate",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it showed no certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not believe whoever signed our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it says that our certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "it says that our certificate is revoked",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it says that our certificate is not valid",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it says that our certificate is not valid",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "it says that our certificate is not for this purpose",
    "UNEXPECTED_EOF_WHILE_READING": "it hung up during the handshake; does it speak TLS?",
}


def explain(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}".rstrip(".")
    if isinstance(error, ssl.SSLError):
        reason = error.reason or ""
        return _REASONS.get(reason, f"TLS failed: {reason.replace('_', ' ').lower() or error}")
    if isinstance(error, ConnectionError):
        return "it hung up during the handshake; does it speak TLS?"
    return str(error) or type(error).__name__


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
