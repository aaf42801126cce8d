"""A stretch of road between two nodes on which accidents can be arranged.

A proxy listens for one node that dials another and carries the bytes both ways. What happens to them is chosen per
direction and can change at any time: they are late, they stand still, they are changed, or the connection is reset.
"""

import asyncio
import os
import socket
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from random import Random, SystemRandom
from typing import cast

from cubecast.addresses import Address

MOST_WAITING = 8 << 20
"""Bytes a direction holds before it stops reading, as the buffers of a network would."""


class Direction(Enum):
    THERE = "there"
    """From the node that dialled."""
    BACK = "back"

    @property
    def opposite(self) -> "Direction":
        return Direction.BACK if self is Direction.THERE else Direction.THERE


@dataclass(slots=True)
class Conditions:
    """What happens to bytes in one direction."""

    delay: float = 0.0
    standing: bool = False
    damage: float = 0.0
    """The chance that a piece of the stream gets one byte changed."""


class LinkProxy:
    """All connections that one node dials to another."""

    def __init__(self, target: Address, random: Random) -> None:
        self.target = target
        self.random = random
        self.conditions = {direction: Conditions() for direction in Direction}
        self._server: asyncio.Server | None = None
        self.carried: dict[_Carried, None] = {}
        self.damaged = 0
        """Pieces with a changed byte so far."""
        self.resets = 0

    async def open(self) -> Address:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Side(Direction.THERE, _Carried(self)), "127.0.0.1", 0)
        return Address(*self._server.sockets[0].getsockname()[:2])

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for carried in list(self.carried):
            carried.drop()

    def reset(self) -> None:
        """Break every connection, with whatever is under way."""
        for carried in list(self.carried):
            carried.drop()
            self.resets += 1

    def heal(self) -> None:
        """Let everything pass again."""
        self.conditions = {direction: Conditions() for direction in Direction}
        for carried in list(self.carried):
            for direction in Direction:
                carried.pass_on(direction)


class _Carried:
    """One connection: two sides, and the bytes under way in each direction."""

    def __init__(self, proxy: LinkProxy) -> None:
        self._proxy = proxy
        self._sides: dict[Direction, _Side] = {}
        self._waiting: dict[Direction, deque[tuple[float, bytes]]] = {direction: deque() for direction in Direction}
        self._bytes = dict.fromkeys(Direction, 0)
        self._ended: set[Direction] = set()
        self._dialling: asyncio.Task[None] | None = None

    def opened(self, side: "_Side") -> None:
        self._sides[side.direction] = side
        if side.direction is Direction.THERE:
            self._proxy.carried[self] = None
            self._dialling = asyncio.ensure_future(self._dial())
        else:
            self.pass_on(Direction.THERE)

    async def _dial(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: _Side(Direction.BACK, self), *self._proxy.target)
        except OSError:
            self.drop()

    def came(self, direction: Direction, data: bytes) -> None:
        proxy, now = self._proxy, asyncio.get_running_loop().time()
        conditions = proxy.conditions[direction]
        if conditions.damage and proxy.random.random() < conditions.damage:
            data = _damaged(data, proxy.random)
            proxy.damaged += 1
        self._waiting[direction].append((now + conditions.delay, data))
        self._bytes[direction] += len(data)
        if self._bytes[direction] > MOST_WAITING:
            self._sides[direction].pause()
        self.pass_on(direction)

    def ended(self, direction: Direction, error: Exception | None) -> None:
        """A side closed: what it said before still arrives, unless it was torn off."""
        if error is not None or direction.opposite in self._ended:
            self.drop()
        else:
            self._ended.add(direction)
            self.pass_on(direction)

    def pass_on(self, direction: Direction) -> None:
        """Write what is due; come back for the rest."""
        loop, waiting = asyncio.get_running_loop(), self._waiting[direction]
        side, other = self._sides.get(direction), self._sides.get(direction.opposite)
        if side is None or other is None or self._proxy.conditions[direction].standing:
            return
        while waiting and waiting[0][0] <= loop.time():
            data = waiting.popleft()[1]
            self._bytes[direction] -= len(data)
            other.write(data)
        if waiting:
            loop.call_at(waiting[0][0], self.pass_on, direction)
        elif direction in self._ended:
            self._proxy.carried.pop(self, None)
            other.close()
        else:
            side.resume()

    def drop(self) -> None:
        self._proxy.carried.pop(self, None)
        if self._dialling is not None:
            self._dialling.cancel()
        for side in self._sides.values():
            side.abort()


class _Side(asyncio.Protocol):
    def __init__(self, direction: Direction, carried: _Carried) -> None:
        self.direction = direction
        self._carried = carried
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._carried.opened(self)

    def data_received(self, data: bytes) -> None:
        self._carried.came(self.direction, data)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._carried.ended(self.direction, error)

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _damaged(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    changed[random.randrange(len(changed))] ^= random.randrange(1, 256)
    return bytes(changed)


# Loopback addresses for those who must know them before anybody listens there.
#
# Not from the range that systems hand out for outgoing connections and for "any port": what comes from there may be
# somebody else's before the one it was chosen for listens, and who keeps dialling such a port while nobody listens may
# in the end be connected to itself. Processes that choose at the same time choose from different parts of the range.

PORTS = range(15_000, 32_000)
PARTS = 17


def free_addresses(count: int) -> list[Address]:
    """All different, because all are open at once."""
    random, found, ours = SystemRandom(), list[Address](), PORTS[os.getpid() % PARTS :: PARTS]
    with ExitStack() as stack:
        while len(found) < count:
            probe = stack.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", random.choice(ours)))
            except OSError:
                continue
            found.append(Address(*probe.getsockname()))
    return found
