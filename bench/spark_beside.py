"""What readers of a node's log cost its live deliveries: latency without and beside them, by turns in one run.

    python -m bench.spark_beside --rows 500000 --rounds 10

A publisher sends at a fixed rate to a subscriber, through a node whose log holds `--rows` messages of 64 bytes. Every
other turn, a process like a Spark worker reads these again and again, at `--readers` × the rate that was asked for if
one is given, else as fast as it can. On two cores the reader competes for them as well; `--cores` pins node and chat to
the first core and readers to the second, so that what is left is what reading costs the node itself.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

import cubecast
from bench.spark_streams import node, publish

READER = """
import sys, time
from cubecast.spark.logs import Range, opened, read_task, tasks
from cubecast.spark.options import read_options
options, rate = read_options({"nodes": sys.argv[1], "topics": "in"}), float(sys.argv[2])
with opened(options) as (_, topics):
    one = topics["in"]
print("ready", flush=True)
begun, rows = time.perf_counter(), 0
while True:
    for task in tasks([Range(one.log_id, "in", one.first, one.durable + 1)], 250_000):
        for batch in read_task(options, task):
            rows += batch.num_rows
            print(rows, flush=True)
            if rate:
                time.sleep(max(0.0, rows / rate - (time.perf_counter() - begun)))
"""


async def chat(address: str, rate: float, seconds: float) -> list[float]:
    """Latencies in milliseconds, from publish to the subscriber's loop."""
    async with cubecast.connect(address) as sending, cubecast.connect(address) as receiving:
        taken: list[float] = []
        async with receiving.subscribe("chat") as subscription:

            async def listen() -> None:
                async for message in subscription:
                    taken.append((perf_counter() - float(message.text())) * 1000)  # noqa: PERF401 - as they come

            listening = asyncio.ensure_future(listen())
            begun = perf_counter()
            for number in range(int(rate * seconds)):
                await asyncio.sleep(max(0.0, begun + number / rate - perf_counter()))
                await sending.publish("chat", repr(perf_counter()))
            await asyncio.sleep(0.2)
            listening.cancel()
        return taken


def quantile(sorted_values: list[float], share: float) -> float:
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def pin(core: int) -> None:
    os.sched_setaffinity(0, {core})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each half of a round")
    parser.add_argument("--rate", type=float, default=500.0, help="live messages a second")
    parser.add_argument(
        "--reading", type=float, default=300_000.0, help="rows a second that the reader asks for; 0: all"
    )
    parser.add_argument(
        "--cores", action="store_true", help="node and chat on the first core, the reader on the second"
    )
    given = parser.parse_args()
    if given.cores:
        pin(0)
    found: dict[bool, list[float]] = {False: [], True: []}
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as name, node(Path(name) / "log") as address:
        publish(address, "in", given.rows)
        asyncio.run(chat(address, given.rate, 1.0))
        for _ in range(given.rounds):
            halves = {}
            for beside in (False, True):
                words = [sys.executable, "-c", READER, address, str(given.reading)]
                start = (lambda: pin(1)) if given.cores else None
                reader = (
                    subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=start) if beside else None
                )
                if reader is not None and reader.stdout is not None:
                    reader.stdout.readline()
                taken = asyncio.run(chat(address, given.rate, given.seconds))
                rows = 0
                if reader is not None and reader.stdout is not None:
                    reader.kill()
                    rows = int(reader.stdout.read().split()[-1])
                    reader.wait()
                sleep(0.2)
                found[beside] += taken
                halves[beside] = quantile(sorted(taken), 0.99)
            ratios.append(halves[True] / halves[False])
            alone, beside_it = halves[False], halves[True]
            print(f"p99 {alone:6.2f} ms, beside a reader {beside_it:6.2f} ms ({rows / given.seconds:,.0f} rows/s)")
    for beside, taken in found.items():
        taken.sort()
        told = ", ".join(f"p{share * 100:g} {quantile(taken, share):.2f} ms" for share in (0.5, 0.9, 0.99, 0.999))
        print(f"{'beside a reader' if beside else 'alone':16}{told}   ({len(taken)} deliveries)")
    load = os.getloadavg()[0]
    print(f"p99 beside a reader, median of {given.rounds} rounds: {median(ratios):.2f} × alone; load {load:.1f}")


if __name__ == "__main__":
    main()
