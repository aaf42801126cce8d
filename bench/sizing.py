"""What a node's process needs: memory at rest, per topic, per client and per subscription, CPU at rest.

Two nodes of one cluster in processes of their own, thin clients in this one. Linux only; the numbers are growth of
resident memory, so small counts are noisy.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import cubecast

PROGRAM = (sys.executable, "-c", "from cubecast.cli import main; main()", "node", "--json", "--dimension", "3")
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def started(*options: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([*PROGRAM, *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["address"]


def resident(process: subprocess.Popen[str]) -> int:
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * PAGE


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def measure(first: subprocess.Popen[str], address: str, topics: int, clients: int) -> None:
    at_rest, before = resident(first), cpu_seconds(first)
    await asyncio.sleep(5)
    print(f"at rest: {at_rest / 2**20:.0f} MiB, {(cpu_seconds(first) - before) / 5:.1%} of a core")
    size = resident(first)
    many = [cubecast.connect(address) for _ in range(clients)]
    opened = [await one for one in many]
    print(f"per client that is connected: {(resident(first) - size) / clients / 1024:.1f} KiB")
    await asyncio.gather(*(one.close() for one in opened))
    async with cubecast.connect(address) as client:
        size = resident(first)
        for number in range(topics):
            await client.publish(f"published.{number}", "x")
        await client.stable(f"published.{topics - 1}", timeout=60)
        print(f"per topic published on once, nobody subscribed: {(resident(first) - size) / topics / 1024:.1f} KiB")
        size = resident(first)
        heard = [client.subscribe(f"subscribed.{number}", gaps="ignore") for number in range(topics)]
        await asyncio.gather(*(one.ready() for one in heard))
        print(f"per topic subscribed to: {(resident(first) - size) / topics / 1024:.1f} KiB")
        size = resident(first)
        for one in heard:
            one.close()
        await client.status()
        print(f"given back when the subscriptions end: {(size - resident(first)) / topics / 1024:.1f} KiB per topic")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=200)
    given = parser.parse_args()
    first, address = started()
    second, _ = started("--join", address)
    try:
        asyncio.run(measure(first, address, given.topics, given.clients))
    finally:
        for process in (second, first):
            process.terminate()
            process.wait(10)


if __name__ == "__main__":
    main()
