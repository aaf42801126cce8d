"""The member process of a peer with an asyncio client."""

import asyncio
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Protocol

from cubecast.experiments.live_load.load import MOST_AT_ONCE, Load, Talker
from cubecast.net.links.loop import run

WINDOW = 2048
"""So many of its own messages a member may have under way before it waits for them to come back from the server: what
bounds the queues everywhere, for systems that publish without an answer."""


class AsyncPeer(Protocol):
    """One member's end of a messaging system. Everybody is subscribed before anybody publishes."""

    async def connect(self, deliver: Callable[[bytes], None]) -> None: ...

    async def publish(self, messages: list[bytes]) -> None: ...

    async def close(self) -> None: ...


class Member(Talker):
    def __init__(self, peer: AsyncPeer, load: Load, number: int, pipe: Connection) -> None:
        super().__init__(load, number, pipe)
        self._peer = peer
        self._prefix = bytes([number])

    async def main(self) -> None:
        await self._peer.connect(self._deliver)
        await self.introduce("subscribed")
        await self.obey(self._write)
        await self._peer.close()
        self.say_goodbye()

    def _deliver(self, message: bytes) -> None:
        """Where time counts, checked at once."""
        if message[0] != self.run_source or len(self.run) >= MOST_AT_ONCE:
            self.check_run()
            self.run_source = message[0]
        self.run.append(message[1:])
        if self.load.rate:
            self.check_run()

    async def _publish(self, count: int) -> None:
        self.check_run()
        await self._peer.publish([self._prefix + message for message in self.stamped(count)])

    async def _write(self) -> None:
        if self.load.rate:
            await self.at_rate(lambda: self._publish(1))
            return
        while self.publishing:
            self.check_run()
            if self.published - self.checker.delivered[self.number] < WINDOW:
                await self._publish(self.load.batch)
                await asyncio.sleep(0)
            else:
                await asyncio.sleep(0.0005)


def serve_async(peer: AsyncPeer, load: Load, number: int, pipe: Connection) -> None:
    """The process of a member whose client is asyncio's."""
    run(Member(peer, load, number, pipe).main())
