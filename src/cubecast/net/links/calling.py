"""Calling a peer: connect, greet, wait for the answer."""

import asyncio
import ssl
from collections.abc import Callable

from cubecast.addresses import Address
from cubecast.errors import RemoteProtocolError
from cubecast.net.links.connection import DEFAULT_BUDGET, Connection
from cubecast.net.links.handshake import Accepted, Answer, Challenge, Opening, Proof, Refused, decode_answer, encode
from cubecast.net.links.tls_dialling import Dialling
from cubecast.net.links.tls_errors import explain

CALL_TIMEOUT = 2.0
SHUTDOWN_TIMEOUT = 2.0
"""Seconds the other side has to agree to the end of a TLS connection."""

Prove = Callable[[Connection, Challenge], Proof]


async def call(
    address: Address,
    opening: Opening,
    *,
    budget: int = DEFAULT_BUDGET,
    timeout: float = CALL_TIMEOUT,
    secure: Dialling | None = None,
    prove: Prove | None = None,
) -> tuple[Connection, Accepted | Refused]:
    """An open connection and what the other side said. Frames that follow the answer are kept for the new owner.

    `prove` answers a challenge. Raises OSError (TimeoutError included) when no peer answers, RemoteProtocolError when
    it is no cubecast node, or not the one its certificate names.
    """
    waiting = _Waiting()
    connection: Connection | None = None
    try:
        async with asyncio.timeout(timeout):
            connection = await _connect(address, waiting, budget, secure)
            if secure is not None:
                secure.check(connection)
            connection.send(encode(opening))
            answer = await waiting.answer()
            if isinstance(answer, Challenge) and prove is not None:
                connection.send(encode(prove(connection, answer)))
                answer = await waiting.answer()
            if isinstance(answer, Challenge):
                raise RemoteProtocolError("it asks for a key that nobody spoke of")
            if secure is not None and isinstance(answer, Accepted):
                secure.check_is(connection, answer.place.node)
    except BaseException as error:
        if connection is not None:
            connection.abort("the call was given up")
        if isinstance(error, ssl.SSLError):
            raise RemoteProtocolError(explain(error)) from None
        raise
    finally:
        waiting.end()
    connection.early = waiting.frames
    return connection, answer


async def _connect(address: Address, waiting: "_Waiting", budget: int, secure: Dialling | None) -> Connection:
    def protocol() -> Connection:
        on_frames, on_lost = waiting.on_frames, waiting.on_lost
        return Connection(on_open=lambda _: None, on_frames=on_frames, on_lost=on_lost, budget=budget)

    loop = asyncio.get_running_loop()
    try:
        if secure is None:
            _, connection = await loop.create_connection(protocol, address.host, address.port)
        else:
            _, connection = await loop.create_connection(
                protocol, address.host, address.port, ssl=secure.context, ssl_shutdown_timeout=SHUTDOWN_TIMEOUT
            )
    except ssl.SSLError:
        raise  # some of them are ValueErrors, too
    except ValueError as error:
        raise OSError(f"{address.host!r} is no host: {error}") from None
    except (ConnectionResetError, ConnectionAbortedError) as error:
        raise type(error)(explain(error)) if secure is not None else error from None
    return connection


class _Waiting:
    """The owner of a connection until the call is over: each answer, then whatever follows."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self._lost: BaseException | None = None
        self._came: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def answer(self) -> Answer:
        while not self.frames:
            if self._lost is not None:
                raise self._lost
            self._came = asyncio.get_running_loop().create_future()
            await self._came
        return decode_answer(self.frames.pop(0))

    def on_frames(self, connection: Connection, frames: list[bytes]) -> None:
        self.frames.extend(frames)
        self.end()

    def on_lost(self, connection: Connection, error: Exception | None) -> None:
        self._lost = error or ConnectionResetError("the connection was closed before an answer came")
        self.end()

    def end(self) -> None:
        if not self._came.done():
            self._came.set_result(None)
