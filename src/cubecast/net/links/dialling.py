"""Finding a node that answers, among several, without storming any of them."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from msgspec import structs

from cubecast.addresses import Address
from cubecast.errors import BadInput, RemoteProtocolError, Unreachable
from cubecast.net.links.calling import call
from cubecast.net.links.connection import Connection
from cubecast.net.links.handshake import Accepted, Refused
from cubecast.net.links.login import NOTHING, Login

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
