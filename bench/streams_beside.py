"""The same stream over Brisa, a cubecast cluster, ZeroMQ and NATS, one after another in one run on one machine.

    python -m bench.streams_beside                  8 and 32 receivers, four processes, 500 messages of 1 KiB per second
    python -m bench.streams_beside --only zeromq    fewer; Brisa stays

Printed: deliveries per second until everybody has the last message, core microseconds for each (server included),
bytes the publisher sends for a message (ZeroMQ sends one copy to each receiver, by construction), latencies. What is
not installed is left out with a line that says so.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Any

import cubecast
from bench.peers import servers
from bench.processes import own_seconds
from bench.streams_live import TOPIC, Receiver
from cubecast.net.links.loop import run

Publish = Callable[[list[bytes]], Awaitable[object]]
SYSTEMS = ("brisa", "cubecast", "zeromq", "nats")


def missing(system: str) -> str | None:
    module = {"zeromq": "zmq", "nats": "nats"}.get(system)
    if module is not None and find_spec(module) is None:
        return f"the package {module} is not installed"
    if system == "nats" and servers.program("nats-server") is None:
        return "nats-server is not installed"
    return None


# A receiver of each


async def receive(system: str, address: str, receiver: Receiver, stack: AsyncExitStack) -> None:
    if system == "zeromq":
        await _from_zeromq(address, receiver, stack)
    elif system == "nats":
        await _from_nats(address, receiver, stack)
    else:
        node = cubecast.Node(protocol=system, listen="127.0.0.1:0", join=[address])
        await stack.enter_async_context(node)
        await node.subscribe(TOPIC, on_batch=receiver.on_batch, on_gap=receiver.on_gap).ready()


async def _from_zeromq(address: str, receiver: Receiver, stack: AsyncExitStack) -> None:
    import zmq
    import zmq.asyncio

    socket = zmq.asyncio.Context.instance().socket(zmq.SUB)
    socket.set_hwm(100_000)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect(address)

    async def read() -> None:
        while True:
            receiver.take([await socket.recv()])

    reading = asyncio.ensure_future(read())
    stack.callback(reading.cancel)


async def _from_nats(address: str, receiver: Receiver, stack: AsyncExitStack) -> None:
    import nats

    async def on_message(message: Any) -> None:
        receiver.take([message.data])

    client = await nats.connect(f"nats://{address}")
    stack.push_async_callback(client.close)
    await client.subscribe(TOPIC, cb=on_message)
    await client.flush()


async def member(options: argparse.Namespace) -> None:
    receivers = [Receiver() for _ in range(options.receivers)]
    async with AsyncExitStack() as stack:
        for one in receivers:
            await receive(options.system, options.join, one, stack)
        print(json.dumps({}), flush=True)
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while (line := (await reader.readline()).decode().strip()) in ("reset", "figures"):
            if line == "reset":
                for one in receivers:
                    one.reset()
            latencies = [latency for one in receivers for latency in one.latencies]
            figures = {"messages": sum(one.messages for one in receivers), "last": [one.last for one in receivers]}
            wrong = sum(one.out_of_order + one.gaps for one in receivers)
            print(json.dumps({**figures, "wrong": wrong, "latencies": latencies}), flush=True)


# A publisher of each: where it is found, how it publishes, and what it has sent so far


async def publisher(system: str, stack: AsyncExitStack, copies: int) -> tuple[str, Publish, Callable[[], int]]:
    if system == "zeromq":
        import zmq

        socket: Any = zmq.Context.instance().socket(zmq.PUB)
        socket.set_hwm(100_000)
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        stack.callback(socket.close)
        sent = [0]

        async def publish(batch: list[bytes]) -> None:
            for one in batch:
                socket.send(one)
                sent[0] += copies * len(one)

        return f"tcp://127.0.0.1:{port}", publish, lambda: sent[0]
    if system == "nats":
        import nats

        address = stack.enter_context(servers.nats())
        client = await nats.connect(f"nats://{address}")
        stack.push_async_callback(client.close)

        async def publish_nats(batch: list[bytes]) -> None:
            for one in batch:
                await client.publish(TOPIC, one)

        return address, publish_nats, lambda: int(client.stats["out_bytes"])
    node = await stack.enter_async_context(cubecast.Node(protocol=system, listen="127.0.0.1:0"))
    return node.address, lambda batch: node.publish_batch(TOPIC, batch), lambda: node._live.life.peers.traffic.bytes_out


class Stream:
    def __init__(self, options: argparse.Namespace, publish: Publish) -> None:
        self.options, self.publish, self.published = options, publish, 0
        self.members: list[asyncio.subprocess.Process] = []

    async def start(self, system: str, address: str, receivers: int) -> None:
        words = [sys.executable, "-m", "bench.streams_beside", "--member", "--system", system, "--join", address]
        for _ in range(self.options.processes):
            more = ["--receivers", str(receivers // self.options.processes)]
            pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "limit": 1 << 24}
            one = await asyncio.create_subprocess_exec(*words, *more, **pipes)  # type: ignore[arg-type]
            self.members.append(one)
            await self._answer(one)

    async def _answer(self, one: asyncio.subprocess.Process) -> dict[str, Any]:
        assert one.stdout is not None
        found: dict[str, Any] = json.loads(await one.stdout.readline())
        return found

    async def ask(self, word: str) -> list[dict[str, Any]]:
        for one in self.members:
            assert one.stdin is not None
            one.stdin.write(f"{word}\n".encode())
        return [await self._answer(one) for one in self.members]

    async def send(self, count: int) -> None:
        stamp, first = time.time(), self.published + 1
        numbers = range(first, first + count)
        self.published += count
        await self.publish([f"{one} {stamp:.6f} ".encode().ljust(self.options.size, b".") for one in numbers])

    async def until(self, enough: Callable[[int], bool], publishing: bool = False) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if publishing:
                await self.send(1)
            if all(enough(last) for one in await self.ask("figures") for last in one["last"]):
                return
            await asyncio.sleep(0.1)

    async def flow(self) -> None:
        rate, batch = self.options.rate, self.options.batch
        began, before = time.monotonic(), self.published
        while (now := time.monotonic()) < began + self.options.seconds:
            due = int((now - began) * rate) - (self.published - before)
            if due >= batch:
                await self.send(due)
            await asyncio.sleep(batch / rate / 4)

    async def close(self) -> None:
        for one in self.members:
            assert one.stdin is not None
            one.stdin.close()
            await one.wait()


async def measure(system: str, receivers: int, options: argparse.Namespace) -> None:
    async with AsyncExitStack() as stack:
        address, publish, sent = await publisher(system, stack, receivers)
        stream = Stream(options, publish)
        stack.push_async_callback(stream.close)
        await stream.start(system, address, receivers)
        await stream.until(lambda last: last > 0, publishing=True)
        await stream.until(lambda last: last == stream.published)
        await stream.ask("reset")
        bytes_before, core, published, began = sent(), own_seconds(), stream.published, time.monotonic()
        await stream.flow()
        await stream.until(lambda last: last == stream.published)
        seconds, figures = time.monotonic() - began, await stream.ask("figures")
        messages = sum(one["messages"] for one in figures)
        latencies = sorted(1e3 * one for member in figures for one in member["latencies"])
        each = (sent() - bytes_before) / (stream.published - published)
        half, tail = (latencies[int(share * len(latencies))] for share in (0.5, 0.99))
        print(
            f"  {system:10} {receivers:3} receivers  {messages / seconds:9,.0f} deliveries/s  "
            f"{1e6 * (own_seconds() - core) / messages:6.2f} µs each  {each:9,.0f} bytes from the publisher  "
            f"p50 {half:7.1f} ms  p99 {tail:7.1f} ms  {sum(one['wrong'] for one in figures)} wrong",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--receivers", type=int, help="instead of 8 and 32")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--only", action="append", choices=SYSTEMS)
    parser.add_argument("--member", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--system", choices=SYSTEMS, help=argparse.SUPPRESS)
    parser.add_argument("--join", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.member:
        run(member(options))
        return
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {options.rate:g} messages/s of {options.size} bytes")
    for system in SYSTEMS:
        if options.only and system not in ("brisa", *options.only):
            continue
        if (why := missing(system)) is not None:
            print(f"  {system}: left out, {why}")
            continue
        for receivers in (options.receivers,) if options.receivers else (8, 32):
            run(measure(system, receivers, options))


if __name__ == "__main__":
    main()
