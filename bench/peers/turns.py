"""What the member process of a peer with an asyncio client does: obey orders from the pipe, publish, receive, check."""

import asyncio
import gc
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Protocol

from cubecast.experiments.live_load.checker import Checker
from cubecast.experiments.live_load.member import MOST_AT_ONCE, Load
from cubecast.net.loop import run

WINDOW = 2048
"""So many of its own messages a member may have under way before it waits for them to come back from the server: what
bounds the queues everywhere, for systems that publish without an answer."""


class AsyncPeer(Protocol):
    """One member's end of a messaging system. Everybody is subscribed before anybody publishes."""

    async def connect(self, deliver: Callable[[bytes], None]) -> None: ...

    async def publish(self, messages: list[bytes]) -> None: ...

    async def close(self) -> None: ...


class Member:
    def __init__(self, peer: AsyncPeer, load: Load, number: int, pipe: Connection) -> None:
        self._peer = peer
        self._load = load
        self._number = number
        self._pipe = pipe
        self._checker = Checker(load.members, load.size)
        self._prefix = bytes([number])
        self._publishing = False
        self._published = 0
        self._delivered = 0
        self._run: list[bytes] = []
        self._run_source = number

    async def main(self) -> None:
        orders: asyncio.Queue[Any] = asyncio.Queue()
        loop, pipe = asyncio.get_running_loop(), self._pipe
        loop.add_reader(pipe.fileno(), lambda: orders.put_nowait(pipe.recv()))
        await self._peer.connect(self._deliver)
        pipe.send("subscribed")
        await orders.get()
        pipe.send("ready")
        writer: asyncio.Task[None] | None = None
        gc.collect()
        gc.freeze()
        while (order := await orders.get()) != "end":
            match order:
                case "publish":
                    self._publishing = True
                    writer = asyncio.ensure_future(self._write_at_rate() if self._load.rate else self._write())
                case "pause":
                    self._publishing = False
                    if writer is not None:
                        await writer
                case "sample":
                    self._checker.sample_latency = True
            pipe.send(self._report())
        loop.remove_reader(pipe.fileno())
        os.set_blocking(pipe.fileno(), True)  # the event loop needed it otherwise, and the last report is long
        await self._peer.close()
        pipe.send(self._report() | {"latencies": self._checker.latencies})

    def _report(self) -> dict[str, Any]:
        self._check_run()
        seen = {"published": self._published, "delivered": self._delivered, "violations": self._checker.violations}
        return {"time": time.monotonic(), "cpu": time.process_time(), **seen}

    def _deliver(self, message: bytes) -> None:
        """Neighbours of one publisher are checked together, as strictly as one by one; where time counts, at once."""
        if message[0] != self._run_source or len(self._run) >= MOST_AT_ONCE or self._load.rate:
            self._check_run()
            self._run_source = message[0]
        self._run.append(message[1:])
        if self._load.rate:
            self._check_run()

    def _check_run(self) -> None:
        if self._run:
            self._delivered += len(self._run)
            self._checker.check(self._run_source, self._run)
            self._run.clear()

    def _next(self, count: int) -> list[bytes]:
        self._check_run()
        messages = self._checker.stamp(self._published + 1, count)
        self._published += count
        return [self._prefix + message for message in messages]

    async def _write(self) -> None:
        while self._publishing:
            self._check_run()
            if self._published - self._checker.delivered[self._number] < WINDOW:
                await self._peer.publish(self._next(self._load.batch))
                await asyncio.sleep(0)
            else:
                await asyncio.sleep(0.0005)

    async def _write_at_rate(self) -> None:
        loop, pause = asyncio.get_running_loop(), 1.0 / self._load.rate
        due = loop.time() + pause * self._number / self._load.members
        while self._publishing:
            await asyncio.sleep(max(0.0, due - loop.time()))
            await self._peer.publish(self._next(1))
            due += pause


def serve_async(peer: AsyncPeer, load: Load, number: int, pipe: Connection) -> None:
    """The process of a member whose client is asyncio's."""
    run(Member(peer, load, number, pipe).main())
