"""One member process: a node in it, one topic published and subscribed through the public API, everything checked."""

import asyncio
import gc
import os
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cubecast.api.client import Client
from cubecast.api.message import Batch
from cubecast.experiments.live_load.checker import Checker
from cubecast.net.addresses import Address
from cubecast.net.config import NodeConfig
from cubecast.net.loop import run
from cubecast.net.node import LiveNode
from cubecast.net.security.settings import TlsSettings

TOPIC = "chat"
MOST_AT_ONCE = 256


@dataclass(frozen=True)
class Load:
    """What every member does."""

    members: int
    size: int = 64
    publish: str = "batch"
    """`batch`: lists of messages · `single`: one call per turn of the event loop · `rate`: at `rate` a second."""
    read: str = "callback"
    """`callback`: a function per batch · `iterate`: one `async for` step per message."""
    rate: float = 0.0
    batch: int = 256
    messages: int | None = None
    """How many each member publishes; as many as it can when None."""
    journal: Path | None = None
    tls: TlsSettings | None = None
    observe: bool = False
    data: Path | None = None
    """Where members keep a log of everything, when they do."""
    loggers: int | None = None
    """How many of them do; all when None."""


class Member:
    def __init__(self, load: Load, number: int, pipe: Connection) -> None:
        self._load = load
        self._number = number
        self._pipe = pipe
        self._checker = Checker(load.members, load.size)
        self._published = 0
        self._delivered = 0
        self._publishing = False
        self._run: list[bytes] = []
        self._run_source = -1

    async def main(self, join: str | None) -> None:
        loop, load = asyncio.get_running_loop(), self._load
        dimension = max(1, (load.members - 1).bit_length())
        addresses = () if join is None else (Address.parse(join),)
        config = NodeConfig(
            dimension=dimension,
            join=addresses,
            node=self._number,
            journal=load.journal,
            observe=load.observe,
            tls=load.tls,
            **self._log(),
        )
        node = LiveNode(config)
        await node.start()
        client = Client(node.port)
        orders: asyncio.Queue[Any] = asyncio.Queue()
        loop.add_reader(self._pipe.fileno(), lambda: orders.put_nowait(self._pipe.recv()))
        self._pipe.send(str(node.address))
        await orders.get()
        reader = await self._subscribe(client)
        self._pipe.send("ready")
        writer: asyncio.Task[None] | None = None
        gc.collect()
        gc.freeze()
        while (order := await orders.get()) != "end":
            match order:
                case "publish":
                    self._publishing = True
                    writer = asyncio.ensure_future(self._write(client))
                case "pause":
                    self._publishing = False
                    if writer is not None:
                        await writer
                case "sample":
                    self._checker.sample_latency = True
            self._pipe.send(self._report())
        loop.remove_reader(self._pipe.fileno())
        os.set_blocking(self._pipe.fileno(), True)  # the event loop needed it otherwise, and the last report is long
        if reader is not None:
            reader.cancel()
        await node.close()
        self._pipe.send(self._report() | {"latencies": self._checker.latencies})

    def _log(self) -> dict[str, Any]:
        load = self._load
        if load.data is None or self._number >= (load.members if load.loggers is None else load.loggers):
            return {}
        return {"data": load.data / f"member-{self._number}", "log": (">",)}

    def _report(self) -> dict[str, Any]:
        self._check_run()
        return {
            "time": time.monotonic(),
            "cpu": time.process_time(),
            "published": self._published,
            "delivered": self._delivered,
            "violations": self._checker.violations,
        }

    # Reading

    async def _subscribe(self, client: Client) -> asyncio.Task[None] | None:
        if self._load.read == "callback":
            subscription = client.subscribe(TOPIC, on_batch=self._on_batch)
            self._subscription: Any = subscription
            await subscription.ready()
            return None
        subscription = client.subscribe(TOPIC)
        await subscription.ready()
        return asyncio.ensure_future(self._iterate(subscription))

    def _on_batch(self, batch: Batch) -> None:
        self._delivered += len(batch)
        self._checker.check(batch.origin.source, batch.payloads)

    async def _iterate(self, subscription: Any) -> None:
        """One step per message. Neighbours of one publisher are checked together, which is as strict as one by one."""
        run, source = self._run, -1
        async for message in subscription:
            if message.origin.source != source or len(run) >= MOST_AT_ONCE:
                self._check_run()
                source = self._run_source = message.origin.source
            run.append(message.data)

    def _check_run(self) -> None:
        if self._run:
            self._delivered += len(self._run)
            self._checker.check(self._run_source, self._run)
            self._run.clear()

    # Writing

    async def _write(self, client: Client) -> None:
        match self._load.publish:
            case "batch":
                while self._goes_on:
                    await client.publish_batch(TOPIC, self._next(self._load.batch))
                    await asyncio.sleep(0)
            case "single":
                await self._write_singles(client)
            case _:
                await self._write_at_rate(client)

    async def _write_singles(self, client: Client) -> None:
        """One call of `publish` in each turn of the event loop. Stamping in advance by the hundred keeps numpy's fixed
        costs out of the measurement; the vectors are then a little older, which makes no check weaker that matters:
        a message published after its stamp depends on no less."""
        while self._goes_on:
            for data in self._next(100):
                await client.publish(TOPIC, data)
                await asyncio.sleep(0)

    async def _write_at_rate(self, client: Client) -> None:
        loop, pause = asyncio.get_running_loop(), 1.0 / self._load.rate
        due = loop.time() + pause * self._number / self._load.members
        while self._goes_on:
            await asyncio.sleep(max(0.0, due - loop.time()))
            await client.publish(TOPIC, self._next(1)[0])
            due += pause

    @property
    def _goes_on(self) -> bool:
        return self._publishing and (self._load.messages is None or self._published < self._load.messages)

    def _next(self, count: int) -> list[bytes]:
        if self._load.messages is not None:
            count = min(count, self._load.messages - self._published)
        messages = self._checker.stamp(self._published + 1, count)
        self._published += count
        return messages


def member(load: Load, number: int, pipe: Connection, join: str | None) -> None:
    """The process."""
    run(Member(load, number, pipe).main(join))
