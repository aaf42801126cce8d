"""Calling somebody: connect, greet, wait for the answer."""

import asyncio

from cubecast.net.addresses import Address
from cubecast.net.connection import DEFAULT_BUDGET, Connection
from cubecast.net.handshake import Answer, Opening, decode_answer, encode

CALL_TIMEOUT = 2.0


async def call(
    address: Address, opening: Opening, *, budget: int = DEFAULT_BUDGET, timeout: float = CALL_TIMEOUT
) -> tuple[Connection, Answer]:
    """An open connection and what the other side said. Frames that follow the answer are kept for the new owner.

    Raises OSError (TimeoutError included) when nobody answers, RemoteProtocolError when it is no cubecast node.
    """
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Answer] = loop.create_future()
    early: list[bytes] = []

    def on_frames(connection: Connection, frames: list[bytes]) -> None:
        if not answered.done():
            answered.set_result(decode_answer(frames.pop(0)))
        early.extend(frames)

    def on_lost(connection: Connection, error: Exception | None) -> None:
        if not answered.done():
            answered.set_exception(error or ConnectionResetError("the connection was closed before an answer came"))

    def protocol() -> Connection:
        return Connection(on_open=lambda _: None, on_frames=on_frames, on_lost=on_lost, budget=budget)

    try:
        async with asyncio.timeout(timeout):
            try:
                _, connection = await loop.create_connection(protocol, address.host, address.port)
            except ValueError as error:
                raise OSError(f"{address.host!r} is no host: {error}") from None
            connection.send(encode(opening))
            try:
                answer = await answered
            except BaseException:
                connection.abort("the call was given up")
                raise
    finally:
        answered.cancel()  # nobody waits for it any more
    connection.early = early
    return connection, answer
