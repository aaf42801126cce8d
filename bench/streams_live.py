"""A stream to many on this machine: nodes that relay, several per process, one publisher; then a process is killed.

    python -m bench.streams_live                         200 nodes in 8 processes, 600 messages of 1 KiB per second
    python -m bench.streams_live --nodes 40 --seconds 5  smaller
    python -m bench.streams_live --judge DIRECTORY       slower, with journals, and the reference checker's verdict

Printed: deliveries per second, core microseconds for each (what this machine could do if nothing else ran), copies per
delivery at rest, bytes the publisher sends for each message, latencies, addresses that a node keeps; then the
processes' nodes that feed others most are killed (-9) in the middle of the stream: whether everybody else got
everything, and the longest pause anybody had.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import cubecast
from bench.processes import own_seconds
from cubecast.net.links.loop import run

TOPIC = "stream"
PROTOCOL: dict[str, Any] = {"protocol": "brisa", "listen": "127.0.0.1:0"}


class Receiver:
    """One subscriber: everything is counted, and what is missing noticed."""

    def __init__(self) -> None:
        self.messages = self.gaps = self.out_of_order = 0
        self.first = self.last = 0
        self.came = 0.0
        self.pause = 0.0
        self.latencies: list[float] = []

    def on_batch(self, batch: Any) -> None:
        self.take([message.data for message in batch])

    def take(self, batch: list[bytes]) -> None:
        now = time.time()
        for data in batch:
            number, sent = data[:40].split(b" ", 2)[:2]
            counter = int(number)
            if not self.first:
                self.first = counter
            elif counter != self.last + 1:
                self.out_of_order += 1
            self.last = counter
        self.messages += len(batch)
        self.latencies.append(now - float(sent))
        if self.came:
            self.pause = max(self.pause, now - self.came)
        self.came = now

    def on_gap(self, gap: Any) -> None:
        self.gaps += gap.count or 1

    def reset(self) -> None:
        self.messages, self.pause, self.came, self.latencies = 0, 0.0, 0.0, []


async def member(options: argparse.Namespace) -> None:
    """A process of several nodes: commands come by standard input, a line each, answers go out as JSON."""
    nodes, receivers = [], []
    for _ in range(options.nodes):
        more: dict[str, Any] = {"journal": options.judge} if options.judge else {}
        node = cubecast.Node(**PROTOCOL, join=[options.join], **more)
        await node.start()
        receiver = Receiver()
        subscription = node.subscribe(TOPIC, on_batch=receiver.on_batch, on_gap=receiver.on_gap)
        await subscription.ready()
        nodes.append(node)
        receivers.append((receiver, subscription))
    print(json.dumps({"ready": len(nodes)}), flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := (await reader.readline()).decode().strip():
        if line == "reset":
            for one, _ in receivers:
                one.reset()
        elif line == "close":
            break
        print(json.dumps(_figures(nodes, [one for one, _ in receivers])), flush=True)
    for node in nodes:
        await node.close()


def _figures(nodes: list[Any], receivers: list[Receiver]) -> dict[str, Any]:
    flows = [flow for node in nodes for flow in node._live.machine.flows.values()]
    latencies = sorted(latency for one in receivers for latency in one.latencies)
    return {
        "messages": sum(one.messages for one in receivers),
        "last": [one.last for one in receivers],
        "wrong": sum(one.out_of_order + one.gaps for one in receivers),
        "pause": max(one.pause for one in receivers),
        "copies": sum(flow.copies for flow in flows),
        "fresh": sum(flow.fresh for flow in flows),
        "children": sum(len(flow.children) for flow in flows),
        "depth": max((flow.depth for flow in flows), default=0),
        "linked": min(len(node.neighbours) for node in nodes),
        "known": [len(node._live.life.directory.places) for node in nodes],
        "latencies": [latencies[int(share * len(latencies))] for share in (0.5, 0.99)] if latencies else [],
    }


class Process:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, nodes: int, join: str, judge: Path | None) -> "Process":
        words = [sys.executable, "-m", "bench.streams_live", "--member", "--nodes", str(nodes), "--join", join]
        words += ["--judge", str(judge)] if judge else []
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        one = cls(await asyncio.create_subprocess_exec(*words, **pipes, limit=1 << 24))  # type: ignore[arg-type]
        await one.answer()
        return one

    async def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(await self.process.stdout.readline())
        return found

    async def ask(self, word: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n".encode())
        return await self.answer()

    async def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"close\n")
        await self.process.wait()


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.published = 0

    async def run(self) -> None:
        options = self.options
        more: dict[str, Any] = {"journal": options.judge} if options.judge else {}
        async with cubecast.Node(**PROTOCOL, **more) as self.publisher:
            each = options.nodes // options.processes
            self.processes = [await self._begin(place, each) for place in range(options.processes)]
            print(f"{each * options.processes} nodes in {options.processes} processes joined", flush=True)
            while not all([(await one.ask("figures"))["linked"] for one in self.processes]):
                await asyncio.sleep(0.2)
            await self._publish(1.0)  # the first message floods, and a tree is there
            await self._settle()
            await self._at_rest()
            await self._killed()
            for one in self.processes:
                await one.close()

    async def _begin(self, place: int, each: int) -> Process:
        print(f"process {place}", end="\r", flush=True)
        return await Process.start(each, self.publisher.address, self.options.judge)

    async def _publish(self, seconds: float) -> None:
        """At the rate that was asked for, in batches."""
        rate, size, batch = self.options.rate, self.options.size, self.options.batch
        began, before = time.monotonic(), self.published
        while (now := time.monotonic()) < began + seconds:
            due = int((now - began) * rate) - (self.published - before)
            if due >= batch:
                stamp = time.time()
                numbers = range(self.published + 1, self.published + due + 1)
                messages = [f"{number} {stamp:.6f} ".encode().ljust(size, b".") for number in numbers]
                await self.publisher.publish_batch(TOPIC, messages)
                self.published += due
            await asyncio.sleep(batch / rate / 4)

    async def _settle(self) -> list[dict[str, Any]]:
        """Until everybody has the last message, who heard of the stream at all."""
        deadline = time.monotonic() + 60
        while True:
            figures = [await one.ask("figures") for one in self.processes]
            if all(last in (0, self.published) for one in figures for last in one["last"]):
                return figures
            if time.monotonic() > deadline:
                return figures
            await asyncio.sleep(0.2)

    async def _at_rest(self) -> None:
        before = [await one.ask("reset") for one in self.processes]
        sent, core, published = self._sent(), own_seconds(), self.published
        began = time.monotonic()
        await self._publish(self.options.seconds)
        after = await self._settle()
        seconds = time.monotonic() - began  # until everybody has the last one
        spent = own_seconds() - core
        messages = sum(one["messages"] for one in after)
        copies, fresh = (
            sum(one[what] for one in after) - sum(one[what] for one in before) for what in ("copies", "fresh")
        )
        per_message = (self._sent() - sent) / (self.published - published)
        cost = 1e6 * spent / messages
        print(f"  {messages / seconds:,.0f} deliveries/s over {seconds:.0f} s, {cost:.2f} µs of a core each")
        print(f"  copies per delivery {copies / fresh:.4f}; depth {max(one['depth'] for one in after)}")
        print(f"  the publisher sends {per_message:,.0f} bytes per message of {self.options.size}")
        halves, tails = zip(*(one["latencies"] for one in after), strict=True)
        print(f"  latency p50 {1e3 * sorted(halves)[len(halves) // 2]:.1f} ms, p99 {1e3 * max(tails):.1f} ms")
        print(f"  longest pause {max(one['pause'] for one in after):.2f} s, {sum(one['wrong'] for one in after)} wrong")
        known = sorted(count for one in after for count in one["known"])
        print(f"  addresses that a node keeps: {known[len(known) // 2]} at half of them, at most {known[-1]}")

    async def _killed(self) -> None:
        """The process whose nodes feed most others."""
        figures = [await one.ask("reset") for one in self.processes]
        place = max(range(len(figures)), key=lambda one: figures[one]["children"])
        victim = self.processes.pop(place)
        publishing = asyncio.ensure_future(self._publish(self.options.seconds))
        await asyncio.sleep(self.options.seconds / 3)
        os.kill(victim.process.pid, signal.SIGKILL)
        await publishing
        after = await self._settle()
        left = [last for one in after for last in one["last"]]
        whole = sum(last == self.published for last in left)
        wrong, pause = sum(one["wrong"] for one in after), max(one["pause"] for one in after)
        print(f"  killed -9: a process with {figures[place]['children']} children below its nodes")
        print(f"  of {len(left)} others {whole} have everything, {wrong} gaps; longest pause {pause:.2f} s", flush=True)

    def _sent(self) -> int:
        sent: int = self.publisher._live.life.peers.traffic.bytes_out
        return sent


def judge(directory: Path) -> None:
    from cubecast.check.checker import check_trace
    from cubecast.protocol.families import find
    from cubecast.trace.event import RunInfo
    from cubecast.trace.journal import collect
    from cubecast.trace.reader import read_trace

    brisa = find("brisa")
    info = RunInfo("streams", "brisa", brisa.promises, measured=brisa.measured)
    collect(directory, directory / "trace", info)
    report = check_trace(read_trace(directory / "trace"))
    print(f"  verdict {report.verdict.name}, {report.deliveries:,} deliveries")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=600.0, help="messages per second")
    parser.add_argument("--batch", type=int, default=50, help="messages published together")
    parser.add_argument("--size", type=int, default=1024, help="bytes of a message")
    parser.add_argument("--judge", type=Path, help="an empty directory for journals and the trace")
    parser.add_argument("--member", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--join", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.member:
        run(member(options))
        return
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    run(Bench(options).run())
    if options.judge:
        judge(options.judge)


if __name__ == "__main__":
    main()
