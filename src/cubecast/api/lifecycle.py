"""The life of one subscription: opened, ready, paused and resumed, ended."""

import asyncio

from cubecast.errors import Closed, CubecastError
from cubecast.net.port.port import Port, Since, Sink


class Signal:
    """Wakes all who wait at that moment. A waiter that is cancelled takes nothing with it and leaves no trace."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def wake(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)


class Lifecycle:
    """What is common to subscriptions, however their messages are handed over."""

    def __init__(self, port: Port, pattern: str, since: Since | None = None, where: str | None = None) -> None:
        self.pattern = pattern
        self.since = since
        self.where = where
        self.changed = Signal()
        self.ended = False
        self.error: CubecastError | None = None
        self._port = port
        self._number: int | None = None
        self._ready = self._live = self.is_paused = False

    def open(self, sink: Sink) -> None:
        if self.since is None and self.where is None:
            number = self._port.subscribe(self.pattern, sink)
        else:
            number = self._port.subscribe(self.pattern, sink, self.since, self.where)
        self._number = number
        if self.is_paused:
            self._port.pause(number)

    def pause(self) -> None:
        if not self.is_paused and not self.ended:
            self.is_paused = True
            if self._number is not None:
                self._port.pause(self._number)

    def resume(self) -> None:
        if self.is_paused and not self.ended:
            self.is_paused = False
            if self._number is not None:
                self._port.resume(self._number)

    def become_ready(self) -> None:
        self._ready = True
        self.changed.wake()

    def become_live(self) -> None:
        self._live = True
        self.changed.wake()

    def end(self, error: CubecastError | None) -> None:
        if not self.ended:
            self.ended = True
            self.error = error
            self.changed.wake()

    def leave(self, error: CubecastError | None = None) -> None:
        """End it from this side. Ended first, because the port may say so itself while it is told."""
        if not self.ended:
            self.end(error)
            if self._number is not None:
                self._port.unsubscribe(self._number)

    async def ready(self) -> None:
        """Whatever is published from now on, anywhere, arrives."""
        while not self._ready:
            if self.ended:
                raise self.error or Closed(f"the subscription to {self.pattern} was closed before it was ready")
            await self.changed.wait()

    async def live(self) -> None:
        """What was logged before has been handed over."""
        while not self._live and self.since is not None:
            if self.ended:
                raise self.error or Closed(f"the subscription to {self.pattern} was closed before it caught up")
            await self.changed.wait()

    async def over(self) -> None:
        """Done when nothing comes any more; raises what ended it."""
        while not self.ended:
            await self.changed.wait()
        if self.error is not None:
            raise self.error
