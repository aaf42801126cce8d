"""What every member process does, whatever carries its messages: obey the orders of its pipe, publish, count, check."""

import asyncio
import gc
import os
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any

from cubecast.experiments.live_load.checker import checker_for
from cubecast.experiments.live_load.load import Load

MOST_AT_ONCE = 256


class Talker:
    """One member. Neighbours of one publisher are checked together, which is as strict as one by one."""

    def __init__(self, load: Load, number: int, pipe: Connection) -> None:
        self.load, self.number, self.pipe = load, number, pipe
        self.checker = checker_for(load)
        self.publishing = False
        self.published = 0
        self.delivered = 0
        self.run: list[bytes] = []
        self.run_source = -1
        self._orders: asyncio.Queue[Any] = asyncio.Queue()

    async def introduce(self, address: str) -> list[str]:
        """Say where this member is; where everybody is, once all have said so."""
        asyncio.get_running_loop().add_reader(self.pipe.fileno(), lambda: self._orders.put_nowait(self.pipe.recv()))
        self.pipe.send(address)
        addresses: list[str] = await self._orders.get()
        return addresses

    async def obey(self, write: Callable[[], Awaitable[None]]) -> None:
        """Until it is told to end; `write` publishes as long as `publishing` says."""
        self.pipe.send("ready")
        writer: asyncio.Future[None] | None = None
        gc.collect()
        gc.freeze()
        while (order := await self._orders.get()) != "end":
            match order:
                case "publish":
                    self.publishing = True
                    writer = asyncio.ensure_future(write())
                case "pause":
                    self.publishing = False
                    if writer is not None:
                        await writer
                case "sample":
                    self.checker.sample()
            self.pipe.send(self._report())
        asyncio.get_running_loop().remove_reader(self.pipe.fileno())
        os.set_blocking(self.pipe.fileno(), True)  # the event loop needed it otherwise, and the last report is long

    def say_goodbye(self) -> None:
        self.check_run()
        latencies = self.checker.conclude()
        self.pipe.send(self._report() | {"latencies": latencies})

    def _report(self) -> dict[str, Any]:
        self.check_run()
        return {
            "time": time.monotonic(),
            "cpu": time.process_time(),
            "published": self.published,
            "delivered": self.delivered,
            "violations": self.checker.violations,
        }

    def check_run(self) -> None:
        if self.run:
            self.delivered += len(self.run)
            self.checker.check(self.run_source, self.run)
            self.run.clear()

    def stamped(self, count: int) -> list[bytes]:
        """The next messages."""
        messages = self.checker.stamp(self.published + 1, count)
        self.published += count
        return messages

    async def at_rate(self, publish: Callable[[], Awaitable[None]]) -> None:
        """One message after the other, each when it is due, while `publishing` says so."""
        loop, pause = asyncio.get_running_loop(), 1.0 / self.load.rate
        due = loop.time() + pause * self.number / self.load.members
        while self.goes_on:
            await asyncio.sleep(max(0.0, due - loop.time()))
            await publish()
            due += pause

    @property
    def goes_on(self) -> bool:
        return self.publishing and (self.load.messages is None or self.published < self.load.messages)
