"""Listening, and callers that have not said, and proved, who they are: few at a time, not for long, and a crowd hurts
only itself. They count from the moment they connect, so half a handshake is no way to stay.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any, Protocol

from cubecast.addresses import Address
from cubecast.net.links.handshake import Challenge, ClientGreeting
from cubecast.net.links.tls_refusals import Words, explain
from cubecast.net.security.limits import Handshakes
from cubecast.net.settings.security import Limits


class UnauthenticatedCaller:
    """One of them; `abort` hangs up, whatever stage its connection is at."""

    __slots__ = ("abort", "address", "asked", "channel", "timer")

    def __init__(self, address: str, abort: Callable[[str], None]) -> None:
        self.address, self.abort = address, abort
        self.timer: asyncio.TimerHandle | None = None
        self.channel = b""
        """The digest of the certificate it was shown."""
        self.asked: tuple[ClientGreeting, Challenge] | None = None
        """What it greeted with, and was asked to sign."""


class UnauthenticatedCallers:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._by_address: dict[str, dict[UnauthenticatedCaller, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def arrive(self, address: str, abort: Callable[[str], None]) -> UnauthenticatedCaller:
        """With too many of them, the address that has most loses the one that has been silent for longest: who means to
        greet does it at once, and a crowd from one address does not push anybody else out."""
        caller = UnauthenticatedCaller(address, abort)
        loop, limits = asyncio.get_running_loop(), self.limits
        caller.timer = loop.call_later(limits.greeting_time, self._hurry, caller)
        self._by_address.setdefault(address, {})[caller] = None
        self._count += 1
        if self._count > limits.unauthenticated:
            crowd = max(self._by_address.values(), key=len)
            silent = next(iter(crowd))
            self.leave(silent)
            silent.abort("too many callers that do not say who they are")
        return caller

    def leave(self, caller: UnauthenticatedCaller) -> bool:
        """It is known now, or gone; False when it was counted no more."""
        here = self._by_address.get(caller.address, {})
        if caller not in here:
            return False
        del here[caller]
        if not here:
            del self._by_address[caller.address]
        self._count -= 1
        if caller.timer is not None:
            caller.timer.cancel()
        return True

    def abort_all(self, reason: str) -> None:
        for here in list(self._by_address.values()):
            for caller in list(here):
                caller.abort(reason)

    def _hurry(self, caller: UnauthenticatedCaller) -> None:
        caller.abort("it did not greet in time")


# Listening for TLS. Callers count from the moment they connect, so half a handshake is no way to stay.
#
# Sockets are accepted here and not by the event loop's server, which would tell the node nothing of a caller before its
# handshake is over. Who calls without TLS is told so in the clear and goes.

log = logging.getLogger(__name__)

BACKLOG = 1024
HANDSHAKE = 0x16
"""The first byte of a caller that speaks TLS."""
SHUTDOWN_TIMEOUT = 2.0
"""Seconds a peer has to agree to the end of a connection."""
PAUSE = 0.1
"""Seconds until the next try when the system has no more sockets."""

Made = Callable[[UnauthenticatedCaller], asyncio.BaseProtocol]


class Certified(Protocol):
    """What callers are shown; asked for at each handshake."""

    @property
    def server(self) -> ssl.SSLContext: ...

    @property
    def channel(self) -> bytes:
        """The digest of the certificate."""


class TlsListener:
    def __init__(
        self,
        tls: Certified,
        unauthenticated: UnauthenticatedCallers,
        handshakes: Handshakes,
        make: Made,
        on_refused: Callable[[str], None],
        *,
        without_tls: bytes,
    ) -> None:
        """`make` gives the protocol for a caller's connection, to be opened when its handshake is over; who does not
        speak TLS is told `without_tls`; `on_refused` is told of callers whose handshake failed."""
        self._tls, self._unauthenticated, self._handshakes, self._make = tls, unauthenticated, handshakes, make
        self._without_tls = without_tls
        self._on_refused = on_refused
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, listen: Address) -> int:
        """The port; OSError when the address is not to be had."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        port = listen.port
        try:
            for family, _, _, _, where in dict.fromkeys(found):
                self._sockets.append(_listening(family, (where[0], port, *where[2:])))
                port = self._sockets[-1].getsockname()[1]
        except OSError:
            self.close()
            raise
        for listening in self._sockets:
            self._start(self._accept(listening))
        return port

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for one in self._sockets:
            one.close()
        self._sockets.clear()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                caller, where = await loop.sock_accept(listening)
            except OSError as error:
                log.warning("nobody is let in for the moment: %s", error)
                await asyncio.sleep(PAUSE)
                continue
            caller.setblocking(False)
            arrival = _Arrival(self._unauthenticated, str(where[0]))
            arrival.task = self._start(self._receive(caller, f"{where[0]}:{where[1]}", arrival))

    async def _receive(self, caller: socket.socket, label: str, arrival: "_Arrival") -> None:
        try:
            if await self._let_in(caller, arrival):
                return
        except asyncio.CancelledError:
            pass
        except OSError as error:  # it went away before it said anything, or there are no more sockets
            arrival.reason = explain(error)
        caller.close()
        if self._unauthenticated.leave(arrival.counted):
            log.info("a caller was not let in: %s", arrival.reason, extra={"client": label})
            self._on_refused(f"{label}: {arrival.reason}")

    async def _let_in(self, caller: socket.socket, arrival: "_Arrival") -> bool:
        """False when it was told why not."""
        with closing(Words(caller)) as words:
            if await _first_byte(caller) != HANDSHAKE:
                arrival.reason = "it does not speak TLS"
                await words.say(self._without_tls)
            elif not await self._is_its_turn(arrival):
                arrival.reason = f"too many handshakes from {arrival.counted.address}"
            elif not await self._shake_hands(caller, arrival):
                await words.say_what_tls_said()
            else:
                return True
        return False

    async def _is_its_turn(self, arrival: "_Arrival") -> bool:
        limits, now = self._unauthenticated.limits, asyncio.get_running_loop().time()
        wait = self._handshakes.wait(arrival.counted.address, limits, now)
        if wait:
            await asyncio.sleep(wait)
        return wait is not None

    async def _shake_hands(self, caller: socket.socket, arrival: "_Arrival") -> bool:
        arrival.counted.channel = self._tls.channel
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._make(arrival.counted),
                caller,
                ssl=self._tls.server,
                ssl_handshake_timeout=self._unauthenticated.limits.greeting_time,
                ssl_shutdown_timeout=SHUTDOWN_TIMEOUT,
            )
        except OSError as error:
            arrival.reason = explain(error)
            return False
        return True


class _Arrival:
    """A caller whose handshake is not over: to abort it is to cancel the task that has it in hand."""

    def __init__(self, unauthenticated: UnauthenticatedCallers, address: str) -> None:
        self.task: asyncio.Task[None] | None = None
        self.reason = "this node closes"
        self.counted = unauthenticated.arrive(address, self._abort)

    def _abort(self, reason: str) -> None:
        self.reason = reason
        if self.task is not None:
            self.task.cancel()


def _listening(family: int, where: tuple[object, ...]) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind(where)
        one.listen(BACKLOG)
        one.setblocking(False)
    except BaseException:
        one.close()
        raise
    return one


def _arrived(there: asyncio.Future[None]) -> None:
    if not there.done():
        there.set_result(None)


async def _first_byte(caller: socket.socket) -> int | None:
    """Without taking it from the stream; None when the caller hung up."""
    loop = asyncio.get_running_loop()
    there: asyncio.Future[None] = loop.create_future()
    loop.add_reader(caller, _arrived, there)
    try:
        await there
    finally:
        loop.remove_reader(caller)
    first = caller.recv(1, socket.MSG_PEEK)
    return first[0] if first else None
