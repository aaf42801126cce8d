"""Live brokers: events per second through a tree with many filters, and how soon a covered subscription begins.

A tree of seven broker processes (binary). One client publishes at a leaf; at each of the other leaves filters are
subscribed, in all as many as asked for, of which one in a hundred matches an event. Counted is what was published and
delivered to all that match, from the first publication to the last delivery, every event checked. What all processes
together spent per event says what an idle machine would do, where this one is not.

The latency is that of `ready`: at the leaf farthest from a publisher, of filters that nothing there covers and of
narrower ones beside a wide one, in turns.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

from cubecast.api.connect import connect
from cubecast.api.message import Batch, Gap
from cubecast.experiments.live_faults.link_proxy import free_addresses
from cubecast.protocol.brokers.tree import BrokerTree, binary

GROUPS = 100
"""Values of the attribute that filters ask for: one of so many matches."""
AHEAD = 1000
"""Events that are published and not delivered: all clients are in one process, and who does not read is cut off."""


def processor_seconds(pids: Iterable[int]) -> float:
    """Of these processes so far, as the kernel counts it, in hundredths."""
    found = 0
    for pid in pids:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        found += int(words[11]) + int(words[12])
    return found / os.sysconf("SC_CLK_TCK")


@contextmanager
def tree_of(tree: BrokerTree, faults: int) -> Iterator[dict[str, int]]:
    """Broker processes: their addresses, with the number of each process."""
    addresses = [str(one) for one in free_addresses(len(tree))]
    links = " ".join(f"{one}-{other}" for one, near in tree.neighbours.items() for other in near if one < other)
    lines = ['protocol = "locaps"', "dimension = 5", "[peers]"]
    lines += [f'{node} = "{address}"' for node, address in enumerate(addresses)]
    lines += ["[parameters]", f'links = "{links}"', f'faults = "{faults}"', 'heartbeat = "10"']
    lines += ["[limits]", "subscriptions_per_pattern = 10000"]
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        file = Path(directory) / "brokers.toml"
        file.write_text("\n".join(lines) + "\n")
        processes = []
        for node in tree.neighbours:
            words = [sys.executable, "-m", "cubecast", "node", "--json", "--config", str(file), "--id", str(node)]
            process = stack.enter_context(
                subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            )
            stack.callback(process.terminate)
            processes.append(process)
        for process in processes:
            assert process.stdout is not None
            json.loads(process.stdout.readline())
        yield dict(zip(addresses, [process.pid for process in processes], strict=True))


async def throughput(brokers: dict[str, int], filters: int, events: int) -> tuple[float, float, int]:
    """Events per second, processor seconds of all processes per event, and deliveries."""
    addresses, pids = list(brokers), [os.getpid(), *brokers.values()]
    leaves = range(len(addresses) // 2, len(addresses))
    publisher = await connect(addresses[leaves[0]], timeout=60)
    readers = [await connect(addresses[leaf], timeout=60) for leaf in leaves[1:]]
    got = 0

    def count(batch: Batch) -> None:
        nonlocal got
        got += len(batch)

    def lose(gap: Gap) -> None:
        sys.exit(f"something is missing: {gap.reason}")

    subscriptions = []
    for number in range(filters):
        where = f"group = {number % GROUPS} and price >= {number // GROUPS - 1000}"
        reader = readers[number % len(readers)]
        subscriptions.append(reader.subscribe("events", where=where, on_batch=count, on_gap=lose))
    for subscription in subscriptions:
        await subscription.ready()
    await publisher.advertise("events", f"group >= 0 and group < {GROUPS}")
    matching = [sum(number % GROUPS == group for number in range(filters)) for group in range(GROUPS)]
    await publisher.publish(
        "events", b"the first one waits until all brokers know of it", headers={"group": 0, "price": 0}
    )
    while got < matching[0]:
        await asyncio.sleep(0.001)
    got = expected = 0
    began, spent = perf_counter(), processor_seconds(pids)
    for event in range(events):
        await publisher.publish("events", b"x" * 100, headers={"group": event % GROUPS, "price": event})
        expected += matching[event % GROUPS]
        while expected - got > AHEAD * max(matching):
            await asyncio.sleep(0.001)
    while got < expected:
        await asyncio.sleep(0.001)
    took, spent = perf_counter() - began, processor_seconds(pids) - spent
    assert got == expected, f"{got} deliveries instead of {expected}"
    for client in (publisher, *readers):
        await client.close()
    return events / took, spent / events, got


async def latencies(addresses: list[str], times: int) -> tuple[float, float]:
    """Medians, uncovered and covered, in seconds."""
    publisher, reader = await connect(addresses[-1], timeout=60), await connect(addresses[len(addresses) // 2])
    await publisher.advertise("prices")
    await publisher.advertise("others")
    wide = reader.subscribe("prices", where="price >= 0")
    await wide.ready()
    found: dict[str, list[float]] = {"others": [], "prices": []}
    for turn in range(times):
        for topic, taken in found.items():
            began = perf_counter()
            subscription = reader.subscribe(topic, where=f"price >= {turn + 1} and price < {turn + 2}")
            await subscription.ready()
            taken.append(perf_counter() - began)
            if topic == "prices":
                subscription.close()
    for client in (publisher, reader):
        await client.close()
    return median(found["others"]), median(found["prices"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filters", type=int, default=1000)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--faults", type=int, default=1)
    parser.add_argument("--turns", type=int, default=15)
    given = parser.parse_args()
    with tree_of(binary(2), given.faults) as brokers:
        speed, spent, deliveries = asyncio.run(throughput(brokers, given.filters, given.events))
        print(f"7 brokers, f = {given.faults}, {given.filters} filters of which 1 % match: {speed:,.0f} events/s")
        load, most = os.getloadavg()[0], (os.cpu_count() or 1) / spent
        print(f"{spent * 1e6:.0f} µs of processor time per event, clients included: {most:,.0f}/s with every processor")
        print(f"here for this alone; the load was {load:.1f}")
        print(f"{deliveries:,} deliveries, all there")
    with tree_of(binary(3), given.faults) as brokers:
        uncovered, covered = asyncio.run(latencies(list(brokers), given.turns))
        print(
            f"15 brokers: a subscription begins after {uncovered * 1000:.1f} ms, covered after {covered * 1000:.1f} ms"
        )


if __name__ == "__main__":
    main()
