"""One member process: a node in it, one topic published and subscribed through the public API, everything checked."""

import asyncio
from multiprocessing.connection import Connection
from typing import Any

from cubecast.addresses import Address
from cubecast.api.client import Client
from cubecast.api.message import Batch
from cubecast.experiments.live_load.load import MOST_AT_ONCE, Load, Talker
from cubecast.net.links.loop import run
from cubecast.net.live_node import LiveNode
from cubecast.net.settings.config import NodeConfig

TOPIC = "chat"


class Member(Talker):
    async def main(self, join: str | None) -> None:
        load = self.load
        dimension = max(1, (load.members - 1).bit_length())
        addresses = () if join is None else (Address.parse(join),)
        config = NodeConfig(
            dimension=dimension,
            join=addresses,
            node=self.number,
            journal=load.journal,
            observe=load.observe,
            tls=load.tls,
            **self._log(),
        )
        node = LiveNode(config)
        await node.start()
        client = Client(node.port)
        await self.introduce(str(node.address))
        reader = await self._subscribe(client)
        await self.obey(lambda: self._write(client))
        if reader is not None:
            reader.cancel()
        await node.close()
        self.say_goodbye()

    def _log(self) -> dict[str, Any]:
        load = self.load
        if load.data is None or self.number >= (load.members if load.loggers is None else load.loggers):
            return {}
        return {"data": load.data / f"member-{self.number}", "log": (">",)}

    # Reading

    async def _subscribe(self, client: Client) -> asyncio.Task[None] | None:
        if self.load.read == "callback":
            subscription = client.subscribe(TOPIC, on_batch=self._on_batch)
            self._subscription: Any = subscription
            await subscription.ready()
            return None
        subscription = client.subscribe(TOPIC)
        await subscription.ready()
        return asyncio.ensure_future(self._iterate(subscription))

    def _on_batch(self, batch: Batch) -> None:
        self.delivered += len(batch)
        self.checker.check(batch.origin.source, batch.payloads)

    async def _iterate(self, subscription: Any) -> None:
        """One step per message."""
        run, source = self.run, -1
        async for message in subscription:
            if message.origin.source != source or len(run) >= MOST_AT_ONCE:
                self.check_run()
                source = self.run_source = message.origin.source
            run.append(message.data)

    # Writing

    async def _write(self, client: Client) -> None:
        match self.load.publish:
            case "batch":
                while self.goes_on:
                    await client.publish_batch(TOPIC, self._next(self.load.batch))
                    await asyncio.sleep(0)
            case "single":
                await self._write_singles(client)
            case _:
                await self.at_rate(lambda: client.publish(TOPIC, self._next(1)[0]))

    async def _write_singles(self, client: Client) -> None:
        """One call of `publish` in each turn of the event loop. Stamping in advance by the hundred keeps numpy's fixed
        costs out of the measurement; the vectors are then a little older, which makes no check weaker that matters:
        a message published after its stamp depends on no less."""
        while self.goes_on:
            for data in self._next(100):
                await client.publish(TOPIC, data)
                await asyncio.sleep(0)

    def _next(self, count: int) -> list[bytes]:
        most = self.load.messages
        return self.stamped(count if most is None else min(count, most - self.published))


def member(load: Load, number: int, pipe: Connection, join: str | None) -> None:
    """The process."""
    run(Member(load, number, pipe).main(join))
