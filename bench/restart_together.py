"""All nodes of a cluster with logs are killed and started again: how long until each serves, and is anything missing?

    python -m bench.restart_together --nodes 16

Processes of their own on loopback. Some messages are made durable at one node each, spread over topics; then all
processes are killed at once, so that the other logs lack what they had not written yet, and started again at once. The
clock runs from the first start to the line each node prints when it serves. Then a client reads everything from the
beginning at each node: every message once, in each publisher's order, and no gap. Beside it, on the same machine in the
same minute, the same cluster without logs and without anything to fill, and as the yardstick as many processes that do
nothing but import what a node imports: on few cores that alone takes its time. All run from compiled bytecode, as an
installed package does.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import cubecast
from cubecast.experiments.live_faults.link_proxy import free_addresses

PROGRAM = (sys.executable, "-c", "from cubecast.cli import main; main()")
READY_WITHIN = 4.0
"""Seconds, on an idle machine; what is printed for a busy one says how busy it was."""
IMPORTS = (sys.executable, "-c", "import cubecast.cli.node, cubecast.protocol.cubecast.family as _; print('{}')")
"""What every node does before it can do anything; it answers in JSON, as a node does when it serves."""


def environment(directory: Path) -> dict[str, str]:
    """Bytecode is kept, as where a package was installed; some development machines switch that off."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(directory / "bytecode")}


def run(words: Iterable[object], directory: Path) -> "subprocess.Popen[str]":
    given = [str(word) for word in words]
    return subprocess.Popen(given, stdout=subprocess.PIPE, text=True, env=environment(directory))


def importing(directory: Path, processes: int) -> float:
    """Seconds until so many processes have imported what a node needs."""
    _served(first := run(IMPORTS, directory), 0.0)  # not counted: it may have to compile
    begin = time.monotonic()
    some = [run(IMPORTS, directory) for _ in range(processes)]
    slowest = max(_served(process, begin) for process in some)
    kill([first, *some])
    return slowest


def started(directory: Path, nodes: int, *, logs: bool) -> tuple[list[subprocess.Popen[str]], list[float]]:
    """The processes, and when each served, in seconds since the first was started."""
    begin, processes = time.monotonic(), []
    for node in range(nodes):
        words = ["node", "--json", "--config", directory / "cluster.toml", "--id", node]
        words += ["--data", directory / f"{node}", *(("--log", ">") if logs else ())]
        processes.append(run([*PROGRAM, *words], directory))
    return processes, [_served(process, begin) for process in processes]


def _served(process: subprocess.Popen[str], begin: float) -> float:
    assert process.stdout is not None
    json.loads(process.stdout.readline())
    return time.monotonic() - begin


def kill(processes: Iterable[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def publish(addresses: list[str], messages: int) -> None:
    """Each node's client on a topic of its own and on a common one."""

    async def one(number: int, address: str) -> None:
        async with cubecast.connect(address) as client:
            for count in range(messages):
                await client.publish(f"own.{number}", [number, count], wait="durable")
            await client.publish("common", [number, 0], wait="durable")

    await asyncio.gather(*(one(number, address) for number, address in enumerate(addresses)))


async def missing(address: str, nodes: int, messages: int) -> tuple[int, int]:
    """How many messages and gaps a reader from the beginning finds too few and too many."""
    expected = {(f"own.{number}", number, count) for number in range(nodes) for count in range(messages)}
    expected |= {("common", number, 0) for number in range(nodes)}
    gaps, got = 0, []
    async with cubecast.connect(address) as client:
        subscription = client.subscribe(">", since="beginning")
        await subscription.live()
        await client.publish("end", address)
        async for event in subscription:
            if isinstance(event, cubecast.Gap):
                gaps += 1
            elif event.topic != "end":
                got.append((event.topic, *event.data))
            elif event.data == address:
                break
    in_order = all(
        [count for topic, _, count in got if topic == f"own.{number}"] == list(range(messages))
        for number in range(nodes)
    )
    return len(expected - set(got)) + (len(got) - len(set(got))) + (not in_order), gaps


def trial(nodes: int, messages: int, *, logs: bool) -> tuple[float, list[float], int, int]:
    """Seconds of importing alone, when each node served, and what was missing, doubled or announced as a gap."""
    addresses = [str(address) for address in free_addresses(nodes)]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        yardstick = importing(directory, nodes)
        peers = "\n".join(f'{node} = "{address}"' for node, address in enumerate(addresses))
        (directory / "cluster.toml").write_text(f"[peers]\n{peers}\n")
        processes, _ = started(directory, nodes, logs=logs)
        if logs:
            asyncio.run(publish(addresses, messages))
        kill(processes)
        processes, ready = started(directory, nodes, logs=logs)
        stack.callback(kill, processes)
        lost = gaps = 0
        for address in addresses if logs else []:
            too_few, announced = asyncio.run(missing(address, nodes, messages))
            lost, gaps = lost + too_few, gaps + announced
        return yardstick, ready, lost, gaps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--messages", type=int, default=20, help="per node, each waited for until it is durable")
    arguments = parser.parse_args()
    print(f"{arguments.nodes} nodes killed and started at once; the machine's load is {os.getloadavg()[0]:.1f}")
    failures = 0
    for logs in (False, True):
        yardstick, ready, lost, gaps = trial(arguments.nodes, arguments.messages, logs=logs)
        what = "with logs   " if logs else "without logs"
        aim = f" (aim on an idle machine: {READY_WITHIN:.0f} s)" if logs else ""
        print(f"{what}: first ready after {min(ready):.1f} s, last after {max(ready):.1f} s{aim}; ", end="")
        print(f"{arguments.nodes} processes that only import take {yardstick:.1f} s; ", end="")
        print(f"missing or doubled {lost}, gaps {gaps}" if logs else "nothing to fill")
        failures += lost + gaps
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
