"""What observing costs: the same live load with nodes that count what happens and nodes that do not, in turns.

Processor time per delivery, because the clock on the wall also measures the neighbours; the best of several rounds of
each, one after the other. Four nodes in this process over loopback, each publishes to all, lists or one message
per turn of the event loop. `--rounds R --messages M`, `--processes` for nodes in processes of their own.
"""

import argparse
import asyncio
import gc
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

from cubecast.api.node import Node
from cubecast.experiments.live_load.cluster import measure_messages
from cubecast.experiments.live_load.member import Load
from cubecast.net.loop import run

NODES, SIZE, BATCH = 4, 64, 256


async def _publish(node: Node, messages: int, batch: int) -> None:
    for _ in range(messages // batch):
        if batch > 1:
            await node.publish_batch("chat", [bytes(SIZE)] * batch)
        else:
            await node.publish("chat", bytes(SIZE))
        await asyncio.sleep(0)


async def _here(observe: bool, messages: int, batch: int) -> float:
    """Microseconds of processor time per delivery."""
    delivered = 0

    def count(batch: list[object]) -> None:
        nonlocal delivered
        delivered += len(batch)

    async with AsyncExitStack() as stack:
        nodes: list[Node] = []
        for _ in range(NODES):
            join = [nodes[0].address] if nodes else []
            nodes.append(await stack.enter_async_context(Node(join=join, dimension=2, observe=observe)))
        for node in nodes:
            await node.subscribe("chat", on_batch=count).ready()
        await asyncio.gather(*(_publish(node, BATCH, batch) for node in nodes))
        gc.collect()
        gc.disable()
        wanted = delivered = 0
        wanted = NODES * NODES * (messages // batch * batch)
        started = time.process_time()
        await asyncio.gather(*(_publish(node, messages, batch) for node in nodes))
        while delivered < wanted:
            await asyncio.sleep(0.001)
        spent = time.process_time() - started
        gc.enable()
    return 1e6 * spent / delivered


def here(observe: bool, messages: int, batch: int) -> float:
    return run(_here(observe, messages, batch))


def apart(observe: bool, messages: int, batch: int) -> float:
    """The same in processes of their own."""
    how = "batch" if batch > 1 else "single"
    measured = measure_messages(Load(NODES, SIZE, publish=how, messages=messages, observe=observe))
    assert not measured.lost and not measured.violations, measured
    return 1e6 * measured.cpu_seconds / measured.deliveries


def compare(name: str, rounds: int, once: Callable[[bool], float]) -> None:
    found: dict[bool, list[float]] = {False: [], True: []}
    for number in range(2 * rounds):
        # In turns, and each of them first half of the time.
        observe = bool((number + number // 2) % 2)
        found[observe].append(once(observe))
    off, on = min(found[False]), min(found[True])
    told = {"load": name, "rounds": rounds, "off": round(off, 3), "on": round(on, 3), "unit": "µs CPU per delivery"}
    print(json.dumps(told | {"more": f"{100 * (on / off - 1):+.1f} %"}, ensure_ascii=False), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000, help="Per node.")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--processes", action="store_true")
    chosen = parser.parse_args()
    measured = apart if chosen.processes else here
    compare(f"lists of {BATCH}", chosen.rounds, lambda observe: measured(observe, chosen.messages, BATCH))
    compare("one message a turn", chosen.rounds, lambda observe: measured(observe, chosen.messages // 40, 1))


if __name__ == "__main__":
    main()
