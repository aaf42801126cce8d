"""Malformed frames against a live node on loopback: it refuses each, keeps its other links, and leaks nothing.

Half come from strangers in place of a greeting, half from somebody who was let in as a node. Meanwhile another node
keeps talking to the one under attack; everything it says must arrive. `--frames 100000` is the long run.
"""

import argparse
import asyncio
import gc
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from time import process_time

from bench.hostile_packets import hostile_frame
from cubecast.errors import CubecastError, RemoteProtocolError
from cubecast.ids import MessageId, Topic
from cubecast.net.links.framing import HEADER, framed
from cubecast.net.links.handshake import MAGIC, OLDEST_VERSION, VERSION, Greeting, JoinRequest, Place, encode
from cubecast.net.links.loop import run
from cubecast.net.live_node import LiveNode
from cubecast.net.port.port import GapNotice, Logged, PublisherCut
from cubecast.net.settings.config import NodeConfig
from cubecast.protocol.cubecast.parameters import Parameters
from cubecast.protocol.cubecast.validation import Validator
from cubecast.wire.codec import codec_named

decode = codec_named("cubecast").decode

DIMENSION = 3
ATTACKERS = range(4, 8)
"""Ids that strangers are let in as."""
AT_ONCE = 16
ANSWER_TIME = 10.0
TOPIC = "talk"


class Counting:
    """A sink that remembers how much came, and whether anything was missing or out of line."""

    def __init__(self) -> None:
        self.delivered = self.gaps = self.disorder = 0

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        self.disorder += first.counter != self.delivered + 1
        self.delivered += len(payloads)

    def on_ready(self) -> None: ...
    def on_live(self, known: PublisherCut) -> None: ...

    def on_gap(self, gap: GapNotice) -> None:
        self.gaps += 1

    def on_end(self, error: CubecastError | None) -> None: ...


@dataclass
class Found:
    frames: int = 0
    """Malformed ones, each answered with a disconnection."""
    unanswered: list[bytes] = field(default_factory=list)
    """What was said on connections that were still open long afterwards."""
    sent: int = 0
    received: Counting = field(default_factory=Counting)
    link_kept: bool = False
    growth: int = 0
    """Bytes that Python holds at the end more than a fifth into the run."""
    silent_left: int = 0
    cpu_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        heard = self.received.delivered == self.sent and not self.received.gaps and not self.received.disorder
        return heard and self.link_kept and not self.unanswered and not self.silent_left


def malformed_frame(random: Random, sender: int) -> bytes:
    """What this peer would not send if it were correct: it does not decode, or its values are impossible."""
    validator = Validator(0, Parameters(DIMENSION))
    while True:
        frame = hostile_frame(random.randrange)
        try:
            validator.check(sender, decode(frame), 0)
        except RemoteProtocolError:
            return frame


def malformed_stream(random: Random, greeting: bytes) -> bytes:
    """Bytes in place of a greeting."""
    kind = random.randrange(5)
    if kind == 0:
        return random.randbytes(random.randrange(HEADER.size, 80))
    if kind == 1:
        return HEADER.pack(1 << 30, (1 << 30) ^ 0xFFFFFFFF, 0)
    damaged = bytearray(framed(greeting))
    if kind == 2:
        damaged[random.randrange(len(damaged))] ^= random.randrange(1, 256)
        return bytes(damaged)
    if kind == 3:
        return framed(random.randbytes(random.randrange(1, 60)))
    return framed(malformed_frame(random, ATTACKERS[0]))


class Attack:
    def __init__(self, node: LiveNode, random: Random, found: Found) -> None:
        self._address = node.address
        self._random = random
        self._found = found
        self._join = encode(JoinRequest(MAGIC, OLDEST_VERSION, VERSION, "cubecast", b"stranger", None))
        self._ports: dict[int, asyncio.Lock] = {one: asyncio.Lock() for one in ATTACKERS}

    async def once(self, number: int) -> None:
        if number % 2:
            await self._exchange(malformed_stream(self._random, self._join))
        else:
            attacker = ATTACKERS[number // 2 % len(ATTACKERS)]
            place = Place(attacker, 0, bytes([attacker] * 8), "127.0.0.1:1")
            greeting = Greeting(MAGIC, OLDEST_VERSION, VERSION, "cubecast", place)
            async with self._ports[attacker]:
                await self._exchange(framed(encode(greeting)) + framed(malformed_frame(self._random, attacker)))
        self._found.frames += 1

    async def _exchange(self, data: bytes) -> None:
        """Say it, and wait for the other side to hang up."""
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            writer.write(data)
            async with asyncio.timeout(ANSWER_TIME):
                while await reader.read(1 << 16):
                    pass
        except TimeoutError:
            self._found.unanswered.append(data)
        except ConnectionError:
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def fuzz(frames: int, seed: int) -> Found:
    found, random = Found(), Random(seed)
    settings = {"dimension": DIMENSION, "patience": 30.0, "round_length": 1.0}
    target = LiveNode(NodeConfig(node=0, **settings))
    await target.start()
    other = LiveNode(NodeConfig(node=1, join=(target.address,), **settings))
    await other.start()
    target.port.subscribe(TOPIC, found.received)
    link = target.link_to(1)
    talking = asyncio.ensure_future(_talk(other, found))
    attack, started = Attack(target, random, found), process_time()
    tracemalloc.start()
    await _in_turns(attack, range(frames // 5))
    before = _memory()
    await _in_turns(attack, range(frames // 5, frames))
    found.growth = _memory() - before
    tracemalloc.stop()
    found.cpu_seconds = process_time() - started
    talking.cancel()
    await other.port.publishing.published_all()
    found.link_kept = link is not None and target.link_to(1) is link
    found.silent_left = target.reception.unauthenticated
    await other.close()
    await target.close()
    return found


async def _talk(node: LiveNode, found: Found) -> None:
    while True:
        node.port.publish(TOPIC, [b"%d" % found.sent])
        found.sent += 1
        await asyncio.sleep(0.01)


async def _in_turns(attack: Attack, numbers: range) -> None:
    waiting = iter(numbers)

    async def worker() -> None:
        for number in waiting:
            await attack.once(number)

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


def _memory() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = run(fuzz(options.frames, options.seed))
    heard = found.received.delivered
    print(f"seed {options.seed}: {found.frames:,} malformed frames, {len(found.unanswered)} without a disconnection")
    for data in found.unanswered:
        print(f"  not answered: {data.hex()}")
    print(f"  the other node said {found.sent:,} things, {heard:,} arrived, link kept: {found.link_kept}")
    print(f"  memory grew by {found.growth:,} bytes, {found.silent_left} strangers, {found.cpu_seconds:.1f} s CPU")
    raise SystemExit(0 if found.ok else 1)


if __name__ == "__main__":
    main()
