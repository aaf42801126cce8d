"""What observing costs: one live load, with nodes that count what happens and nodes that do not, in turns.

Four nodes in this process over loopback, each publishes to all, in lists or one message per turn of the event loop. The
same nodes work through many short slices, counting in every second one, so that neighbours on the machine disturb both
alike. Processor time per delivery; the medians are compared, and the best. On a busy machine these differ by more than
counting costs, so the time spent in counting is measured from inside, too (with that of measuring it). Apart from
these, what a node spends every second, however little it has to do: looking at the clock, a sample, two questions about
latency. `--slices N --messages M`.
"""

import argparse
import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median
from typing import Any

from cubecast.api.message import Batch
from cubecast.api.node import Node
from cubecast.net.links.loop import run
from cubecast.net.observe.meter import Meter

NODES, SIZE = 4, 64
LOADS = {256: 1.0, 16: 0.25, 1: 0.02}
"""Messages per list, and the share of the messages that is worth publishing so in one slice."""


class Cluster:
    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._delivered = 0

    async def open(self) -> None:
        for node in self._nodes:
            await node.subscribe("chat", on_batch=self._count).ready()

    def _count(self, batch: Batch) -> None:
        self._delivered += len(batch)

    def observe(self, *, count: bool, look: bool) -> None:
        for node in self._nodes:
            observer = node._live.observer
            assert observer is not None and observer.driver is not None
            observer.driver.meter = observer.meter if count else None
            observer.meter.on_stable = observer.latency.on_stable if look else None
            observer.stop()
            if look:
                observer.start()

    def meters(self) -> list[Meter]:
        return [node._live.observer.meter for node in self._nodes if node._live.observer is not None]

    async def slice(self, messages: int, batch: int) -> float:
        """Microseconds of processor time per delivery."""
        self._delivered = 0
        wanted = NODES * NODES * messages
        started = time.process_time()
        await asyncio.gather(*(self._publish(node, messages, batch) for node in self._nodes))
        while self._delivered < wanted:
            await asyncio.sleep(0.001)
        return 1e6 * (time.process_time() - started) / wanted

    async def idle(self, seconds: float) -> float:
        """Milliseconds of processor time per second and node, with hardly anything to do."""
        started, deadline = time.process_time(), time.monotonic() + seconds
        while time.monotonic() < deadline:
            await asyncio.gather(*(node.publish("chat", b"") for node in self._nodes))
            await asyncio.sleep(0.1)
        return 1e3 * (time.process_time() - started) / seconds / NODES

    async def _publish(self, node: Node, messages: int, batch: int) -> None:
        for _ in range(messages // batch):
            await node.publish_batch("chat", [bytes(SIZE)] * batch)
            await asyncio.sleep(0)


@asynccontextmanager
async def opened() -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        nodes: list[Node] = []
        for _ in range(NODES):
            join = [nodes[0].address] if nodes else []
            nodes.append(await stack.enter_async_context(Node(join=join, dimension=2, observe=True)))
        cluster = Cluster(nodes)
        await cluster.open()
        yield cluster


async def compare(batch: int, messages: int, slices: int) -> None:
    found: dict[bool, list[float]] = {False: [], True: []}
    async with opened() as cluster:
        await cluster.slice(messages, batch)
        gc.collect()
        gc.disable()
        for number in range(2 * slices):
            # In turns, and each of them first half of the time.
            on = bool((number + number // 2) % 2)
            cluster.observe(count=on, look=False)
            found[on].append(await cluster.slice(messages, batch))
        gc.enable()
    for name, of in (("median", median), ("best", min)):
        off, on_ = of(found[False]), of(found[True])
        told = {
            "messages per list": batch,
            "of slices": f"{name} of {slices}",
            "off": round(off, 3),
            "on": round(on_, 3),
        }
        more = {"unit": "µs CPU per delivery", "more": f"{100 * (on_ / off - 1):+.1f} %"}
        print(json.dumps(told | more, ensure_ascii=False), flush=True)


async def inside(batch: int, messages: int) -> None:
    """The share of the processor time of a slice that is spent in counting."""
    spent: list[int] = []

    def timed(count: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            started = time.perf_counter_ns()
            count(*arguments)
            spent.append(time.perf_counter_ns() - started)

        return call

    async with opened() as cluster:
        cluster.observe(count=True, look=False)
        await cluster.slice(messages, batch)
        for meter in cluster.meters():
            meter.packet, meter.step = timed(meter.packet), timed(meter.step)  # type: ignore[method-assign]
        each = await cluster.slice(messages, batch)
    spent.sort()
    usual = spent[: len(spent) * 98 // 100]  # without those in which somebody else had the processor
    counting = sum(usual) / len(usual) * len(spent) / 1e3 / (NODES * NODES * messages)
    told = {"messages per list": batch, "counting": round(counting, 3), "of": round(each, 3)}
    more = {"unit": "µs per delivery", "share": f"{100 * counting / each:.1f} %"}
    print(json.dumps(told | more, ensure_ascii=False), flush=True)


async def compare_idle(seconds: float, rounds: int) -> None:
    found: dict[bool, list[float]] = {False: [], True: []}
    async with opened() as cluster:
        for number in range(2 * rounds):
            on = bool((number + number // 2) % 2)
            cluster.observe(count=on, look=on)
            found[on].append(await cluster.idle(seconds))
    told = {"idle": f"median of {rounds}", "off": round(median(found[False]), 2), "on": round(median(found[True]), 2)}
    print(json.dumps(told | {"unit": "ms CPU per second and node"}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=12_800, help="Per node and slice, in the largest lists.")
    parser.add_argument("--slices", type=int, default=20)
    chosen = parser.parse_args()
    for batch, share in LOADS.items():
        messages = int(chosen.messages * share) // batch * batch
        run(compare(batch, messages, chosen.slices))
        run(inside(batch, messages))
    run(compare_idle(1.0, 5))


if __name__ == "__main__":
    main()
