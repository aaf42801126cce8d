"""Calling: connect, greet, wait for the answer; and finding one of several nodes without storming any of them."""

import asyncio
import random
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import structs

from cubecast.addresses import Address
from cubecast.errors import BadInput, RemoteProtocolError, Unreachable
from cubecast.net.links.connection import DEFAULT_BUDGET, Connection
from cubecast.net.links.handshake import Accepted, Answer, Challenge, Opening, Proof, Refused, decode_answer, encode
from cubecast.net.links.login import NOTHING, Dialling, Login
from cubecast.net.links.tls_refusals import explain

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


FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
MOST_ADDRESSES = 64
"""Nodes remembered besides those the user named."""


def advice(address: Address, reason: str) -> str:
    """For people who wait for an answer from there in vain, unless the reason asks something already."""
    return "" if reason.endswith("?") else f"; is a node running there? cubecast node --listen {address}"


class Dialler:
    """Tries the addresses in turn; after a full round without success it pauses, longer each time, by a random
    share."""

    def __init__(
        self,
        addresses: Sequence[Address],
        cluster: str,
        name: str,
        randomness: random.Random,
        login: Login = NOTHING,
        *,
        fills: bool = False,
    ) -> None:
        if not addresses:
            raise BadInput("a client needs the address of at least one node")
        self._named = list(dict.fromkeys(addresses))
        self._known: list[Address] = []
        self._cluster, self._name, self._login, self._fills = cluster, name, login, fills
        self._random = randomness
        self._last: Address | None = None

    async def dial(self, patience: float) -> tuple[Connection, Accepted]:
        """The first that answers. BadInput when all refuse, Unreachable when one did not answer for so many seconds,
        both with everybody's reason."""
        deadline = asyncio.get_running_loop().time() + patience
        pause = FIRST_PAUSE
        while True:
            reasons: dict[Address, str] = {}
            silent: list[Address] = []
            for address in self._in_turn():
                found = await self._try(address, reasons, silent)
                if found is not None:
                    self._last = address
                    self._learn(found[1])
                    return found
            left = deadline - asyncio.get_running_loop().time()
            hopeless = all(reason.startswith("refused") for reason in reasons.values())
            told = "; ".join(f"{address}: {reason}" for address, reason in reasons.items())
            if hopeless or (left <= 0 and not silent):
                raise BadInput(told)
            if left <= 0:
                raise Unreachable(f"no node answers: {told}{advice(silent[0], reasons[silent[0]])}")
            await asyncio.sleep(min(left, pause * self._random.uniform(0.5, 1.0)))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _in_turn(self) -> list[Address]:
        """Everybody once, beginning after the one that was used last."""
        everybody = list(dict.fromkeys([*self._named, *self._known]))
        start = everybody.index(self._last) + 1 if self._last in everybody else 0
        return everybody[start:] + everybody[:start]

    async def _try(
        self, address: Address, reasons: dict[Address, str], silent: list[Address]
    ) -> tuple[Connection, Accepted] | None:
        objection = self._login.objection(address)
        if objection is not None:
            reasons[address] = f"refused: {objection}"
            return None
        try:
            connection, answer = await self._call(address)
        except TimeoutError:
            reasons[address] = "no answer"
            silent.append(address)
        except OSError as error:
            reasons[address] = error.strerror or str(error) or type(error).__name__
            silent.append(address)
        except RemoteProtocolError as error:
            reasons[address] = f"refused: {error}"
        else:
            if isinstance(answer, Accepted):
                return connection, answer
            connection.abort("refused")
            reasons[address] = answer.reason if answer.retry else f"refused: {answer.reason}"
        return None

    async def _call(self, address: Address) -> tuple[Connection, Accepted | Refused]:
        login, cluster = self._login, self._cluster
        return await call(
            address,
            structs.replace(login.greeting(cluster, self._name), fills=self._fills),
            secure=login.dialling(cluster),
            prove=lambda connection, challenge: login.prove(connection, challenge, cluster),
        )

    def _learn(self, accepted: Accepted) -> None:
        """The node's acquaintances are whom to ask when it is gone."""
        self._known = []
        for place in accepted.places[:MOST_ADDRESSES]:
            with suppress(BadInput):
                self._known.append(Address.parse(place.address))
