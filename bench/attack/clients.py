"""Hostile clients of a node that has company: does anybody else notice?

While they do their worst, an application at the same node asks another one at the other node, again and again, and
records what it got. Nobody may be held faulty, no answer may take longer than a second, and the memory that an attack
took must not grow with its repetitions.
"""

import asyncio
import random
import struct
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from bench.attack.accidents import APPLICATION, settled
from bench.attack.rows import Row
from bench.hostile_packets import hostile_frame
from cubecast.addresses import Address
from cubecast.experiments.live_faults.cluster import ClusterConfig, LiveCluster
from cubecast.experiments.live_faults.recorded import judge, load
from cubecast.net.gateway.messages import Publish, Subscribe, encode
from cubecast.net.links.framing import framed
from cubecast.net.links.handshake import MAGIC, VERSION, ClientGreeting
from cubecast.net.links.handshake import encode as greeted
from cubecast.net.port.port import FromCut

SLOW = 1.0
"""Seconds that the supervisor's question to the attacked node may take."""
MANY = 9_900
GREETING = framed(greeted(ClientGreeting(MAGIC, VERSION, VERSION, "cubecast", "hostile")))

Assault = Callable[[Address, random.Random], Awaitable[int]]
"""How often it did what it does."""


async def _say(at: Address, data: bytes, wait: float = 0.2) -> None:
    with suppress(OSError, TimeoutError):
        reader, writer = await asyncio.open_connection(at.host, at.port)
        try:
            writer.write(data)
            async with asyncio.timeout(5):
                await writer.drain()
            async with asyncio.timeout(wait):
                await reader.read(1 << 20)
        finally:
            writer.close()


async def leaving(at: Address, chance: random.Random) -> int:
    """Three clients with 9,900 subscriptions each come and go, to many topics and to one."""
    for pattern in ("freeze.{}", "freeze.0", "freeze.{}.*"):
        wishes = await asyncio.to_thread(_wishes, pattern)
        await asyncio.gather(*(_say(at, GREETING + wishes, 2.0) for _ in range(3)))
    return 9


@cache
def _wishes(pattern: str) -> bytes:
    return b"".join(framed(encode(Subscribe(n, pattern.format(n)))) for n in range(MANY))


async def large_cuts(at: Address, chance: random.Random) -> int:
    cut = FromCut([(f"t{n % 9}", n % 8, n % 1000, 1) for n in range(60_000)])
    frame = framed(encode(Subscribe(1, "t1", cut)))
    await asyncio.gather(*(_say(at, GREETING + frame, 2.0) for _ in range(20)))
    return 20


async def many_topics(at: Address, chance: random.Random) -> int:
    messages = b"".join(framed(encode(Publish(n + 1, f"flood.{n}", [b"x"]))) for n in range(3000))
    await _say(at, GREETING + messages, 5.0)
    return 3000


async def greetings(at: Address, chance: random.Random) -> int:
    """Valid greetings with fields that no caller means."""
    numbers = [0, -1, 255, 1 << 31, 1 << 63, (1 << 64) - 1]
    edges = [*numbers, "", "\u202e", "x" * 5000, b"", b"\xff" * 9000, None, [], {}, 1.5]
    shapes = [
        ["node", MAGIC, 1, 1, "cubecast", [5, 0, b"somebody", "127.0.0.1:1"]],
        ["join", MAGIC, 1, 1, "cubecast", b"somebody", None, 0],
        ["client", MAGIC, 1, 1, "cubecast", "visitor", None, None],
    ]
    for _ in range(300):
        shape = list(chance.choice(shapes))
        place = chance.randrange(1, len(shape))
        if isinstance(shape[place], list) and chance.random() < 0.7:
            shape[place] = list(shape[place])
            shape[place][chance.randrange(4)] = chance.choice(edges)
        else:
            shape[place] = chance.choice(edges)
        await _say(at, framed(msgspec.msgpack.encode(shape)), 0.02)
    return 300


async def noise(at: Address, chance: random.Random) -> int:
    """Bytes that are no frames, frames that are no messages, messages out of place, before and after a greeting."""
    for number in range(300):
        junk = chance.choice(
            [
                chance.randbytes(chance.randrange(1, 400)),
                framed(chance.randbytes(chance.randrange(1, 400))),
                framed(hostile_frame(chance.randrange)),
                struct.pack(">IIQ", 1 << 20, (1 << 20) ^ 0xFFFFFFFF, 0),
                framed(b"\x91" * 5000),
            ]
        )
        await _say(at, (GREETING if number % 2 else b"") + junk, 0.02)
    return 300


async def never_reading(at: Address, chance: random.Random) -> int:
    """Subscribe to everything that is said, and read none of it."""
    callers = []
    for _ in range(20):
        reader, writer = await asyncio.open_connection(at.host, at.port, limit=1)
        writer.write(GREETING + b"".join(framed(encode(Subscribe(n, "talk.>"))) for n in range(500)))
        callers.append((reader, writer))
    await asyncio.sleep(5)
    for _, writer in callers:
        writer.close()
    return 20


class _Watch:
    """Asks the attacked node how it is, all the while."""

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster, self._is_over = cluster, False
        self.slowest, self.asked, self.last = 0.0, 0, {"memory": 0}
        self._task = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        while not self._is_over:
            began = time.monotonic()
            self.last = await self._cluster.members[0].ask("ping")
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.asked += 1
            await asyncio.sleep(0.05)

    async def end(self) -> None:
        self._is_over = True
        await self._task


async def assail(name: str, assault: Assault, seed: int, directory: Path) -> Row:
    config = ClusterConfig(
        members=2, seed=seed, directory=directory, proxies=False, module=APPLICATION, logs=True,
        topics=("talk.0",), patience=3.0, round_length=0.5, retry=0.5,
    )  # fmt: skip
    row, sizes = Row(name), []
    async with LiveCluster(config) as cluster:
        await cluster.publish(20.0)
        await asyncio.sleep(1.0)
        watch = _Watch(cluster)
        for _ in range(2):
            did = await assault(cluster.addresses[0], random.Random(seed))
            await asyncio.sleep(1.0)
            sizes.append(watch.last["memory"] >> 20)
        await watch.end()
        await settled(cluster, row)
        statuses = await cluster.statuses()
    row.counts = f"2 × {did}, slowest answer {watch.slowest:.2f} s of {watch.asked}, {sizes[0]} then {sizes[1]} MiB"
    if watch.slowest > SLOW:
        row.fault(f"the node did not answer for {watch.slowest:.2f} s")
    for number, status in statuses.items():
        if status["incarnation"]:
            row.fault(f"node {number} was held faulty {status['incarnation']} times")
    row.findings = judge(load(config.records))
    return row


def _attack(name: str, assault: Assault) -> Callable[[int, Path], Awaitable[Row]]:
    return lambda seed, directory: assail(name, assault, seed, directory)


ASSAULTS: dict[str, Assault] = {
    "clients that leave much": leaving,
    "clients with large cuts": large_cuts,
    "clients with many topics": many_topics,
    "clients that never read": never_reading,
    "mutated greetings": greetings,
    "noise": noise,
}
ATTACKS = {name: _attack(name, assault) for name, assault in ASSAULTS.items()}
