"""What the application's interface itself costs per message, without any network. `--messages N --batch B`.

Processor time, the best of several rounds, beside asyncio's own queue on the same messages.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cubecast.api.client import Client
from cubecast.ids import MessageId, Topic
from cubecast.net.links.loop import run
from cubecast.net.port.port import Since, Sink

ROUNDS = 5
CONTENT = bytes(64)


class Nowhere:
    """A port that takes publications and forgets them."""

    sink: Sink

    def subscribe(self, pattern: str, sink: Sink, since: Since | None = None, where: str | None = None) -> int:
        self.sink = sink
        return 1

    def unsubscribe(self, subscription: int) -> None:
        self.sink.on_end(None)

    def pause(self, subscription: int) -> None: ...
    def resume(self, subscription: int) -> None: ...

    def publish(self, topic: Topic, payloads: Sequence[bytes]) -> int:
        return len(payloads)

    def has_room(self, topic: Topic) -> bool:
        return True

    async def room(self, topic: Topic) -> None: ...
    async def stable(self, topic: Topic, accepted: int) -> None: ...
    async def status(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None: ...


def _arrive(port: Nowhere, messages: int, batch: int) -> None:
    """A fresh list per batch, as it comes out of a frame; its cost is not counted to the interface."""
    for counter in range(1, messages + 1, batch):
        port.sink.on_batch("t", MessageId(0, 0, counter), [b"\0" + CONTENT] * batch)


async def callback(messages: int, batch: int) -> float:
    port, seen = Nowhere(), [0]

    def count(arrived: Sequence[Any]) -> None:
        seen[0] += len(arrived)

    Client(port).subscribe("t", on_batch=count)
    return _timed(lambda: _arrive(port, messages, batch))


async def callback_reading_payloads(messages: int, batch: int) -> float:
    port = Nowhere()
    Client(port).subscribe("t", on_batch=lambda arrived: arrived.payloads)
    return _timed(lambda: _arrive(port, messages, batch))


async def iterator(messages: int, batch: int) -> float:
    port = Nowhere()
    heard = Client(port).subscribe("t", budget=1 << 40)
    start = time.process_time()
    _arrive(port, messages, batch)
    left = messages
    async for _ in heard:
        left -= 1
        if not left:
            break
    return time.process_time() - start


async def queue(messages: int, batch: int) -> float:
    waiting: asyncio.Queue[bytes] = asyncio.Queue()
    start = time.process_time()
    for _ in range(messages):
        waiting.put_nowait(CONTENT)
    for _ in range(messages):
        await waiting.get()
    return time.process_time() - start


async def publish(messages: int, batch: int) -> float:
    client = Client(Nowhere())
    start = time.process_time()
    for _ in range(messages):
        await client.publish("t", CONTENT)
    return time.process_time() - start


async def publish_batch(messages: int, batch: int) -> float:
    client = Client(Nowhere())
    contents = [CONTENT] * batch
    start = time.process_time()
    for _ in range(messages // batch):
        await client.publish_batch("t", contents)
    return time.process_time() - start


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


MEASURED: list[tuple[str, Callable[[int, int], Awaitable[float]]]] = [
    ("on_batch=", callback),
    ("on_batch=, reading .payloads", callback_reading_payloads),
    ("async for", iterator),
    ("asyncio.Queue, for comparison", queue),
    ("await publish()", publish),
    ("await publish_batch()", publish_batch),
]


async def _measure(messages: int, batch: int) -> None:
    print(f"{messages} messages of {len(CONTENT)} bytes in batches of {batch}; µs of processor time per message")
    best = dict.fromkeys((name for name, _ in MEASURED), float("inf"))
    for _ in range(ROUNDS):
        for name, measure in MEASURED:
            best[name] = min(best[name], await measure(messages, batch))
    for name, seconds in best.items():
        print(f"  {name:30} {1e6 * seconds / messages:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=102_400)
    parser.add_argument("--batch", type=int, default=256)
    arguments = parser.parse_args()
    run(_measure(arguments.messages, arguments.batch))


if __name__ == "__main__":
    main()
