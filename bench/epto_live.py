"""How long EpTO's total order takes on this machine, in milliseconds and in periods δ.

    python -m bench.epto_live                              16 nodes in one process, 20 messages per second
    python -m bench.epto_live --processes 16               a process for each
    python -m bench.epto_live --nodes 4 --rate 100 --period 0.02

Everybody publishes in turn and everybody subscribes; a latency is from `publish` to the subscriber's function, at any
node. Rounds are short, so what is measured on a busy machine is how long this process waits for a core: the load is
printed, and `chrt -f 10` in front lets it run first.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from typing import Any

import cubecast
from cubecast.net.links.loop import run

WARM_UP = 1.0
TAIL = 60
"""Periods after the last publication within which everything is delivered, or told as missing."""


async def members(arguments: argparse.Namespace, first: int, join: str | None) -> None:
    """This process's nodes, from `first` on; each publishes when it is its turn among all."""
    count, latencies = arguments.nodes // arguments.processes, []
    gaps = 0

    def heard(batch: Any) -> None:
        now = time.monotonic()
        latencies.extend(now - message.data for message in batch)

    def missed(_: Any) -> None:
        nonlocal gaps
        gaps += 1

    nodes: list[cubecast.Node] = []
    for _ in range(count):
        known = [str(nodes[0].address)] if nodes else [] if join is None else [join]
        node = cubecast.Node(
            protocol="epto", listen="127.0.0.1:0", join=known, parameters={"period": str(arguments.period)}
        )
        nodes.append(await node.__aenter__())
    for node in nodes:
        await node.subscribe("t", on_batch=heard, on_gap=missed).ready()
    print(json.dumps({"address": str(nodes[0].address)}), flush=True)
    begin = float(await asyncio.to_thread(sys.stdin.readline)) if arguments.member is not None else time.monotonic()
    begin += WARM_UP
    await asyncio.sleep(max(0.0, begin - time.monotonic()))
    published, used = 0, time.process_time()
    for turn in range(int(arguments.rate * arguments.seconds)):
        if first <= turn % arguments.nodes < first + count:
            await asyncio.sleep(max(0.0, begin + turn / arguments.rate - time.monotonic()))
            await nodes[turn % arguments.nodes - first].publish("t", time.monotonic())
            published += 1
    await asyncio.sleep(max(0.0, begin + arguments.seconds - time.monotonic()))
    used = time.process_time() - used
    await asyncio.sleep(TAIL * arguments.period)
    print(json.dumps({"published": published, "latencies": latencies, "gaps": gaps, "seconds": used}), flush=True)
    for node in nodes:
        await node.close()


def spread(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """What each process says of its nodes."""
    started: list[subprocess.Popen[str]] = []
    join: str | None = None
    for number in range(arguments.processes):
        words = [sys.executable, "-m", "bench.epto_live", *sys.argv[1:], "--member", str(number)]
        one = subprocess.Popen(
            [*words, *(("--join", join) if join is not None else ())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(one)
        address = json.loads(_line(one))["address"]
        join = address if join is None else join
    begin = time.monotonic()
    for one in started:
        assert one.stdin is not None
        one.stdin.write(f"{begin}\n")
        one.stdin.flush()
    said = [json.loads(_line(one)) for one in started]
    for one in started:
        one.wait()
    return said


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def report(arguments: argparse.Namespace, said: list[dict[str, Any]]) -> int:
    latencies = sorted(latency for one in said for latency in one["latencies"])
    published = sum(one["published"] for one in said)
    expected, gaps = published * arguments.nodes, sum(one["gaps"] for one in said)
    shown = ", ".join(
        f"p{share} {value * 1000:.1f} ms ({value / arguments.period:.1f} δ)"
        for share in (50, 90, 99)
        for value in [latencies[min(len(latencies) - 1, len(latencies) * share // 100)]]
    )
    seconds = sum(one["seconds"] for one in said)
    print(f"{arguments.nodes} nodes in {arguments.processes} processes, δ = {arguments.period * 1000:g} ms: {shown}")
    print(
        f"{published} messages at {arguments.rate:g}/s, {len(latencies)} of {expected} deliveries, {gaps} gaps; ",
        end="",
    )
    print(f"{seconds / max(1, published) * 1000:.1f} core ms per message; load {os.getloadavg()[0]:.0f}")
    return 0 if len(latencies) == expected else 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--processes", type=int, default=1, help="the nodes are shared out evenly")
    parser.add_argument("--rate", type=float, default=20.0, help="messages per second, of all nodes together")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--period", type=float, default=0.005, help="δ, in seconds")
    parser.add_argument("--member", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--join", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.nodes % arguments.processes:
        parser.error(f"{arguments.nodes} nodes cannot be shared out evenly among {arguments.processes} processes")
    if arguments.member is not None:
        run(members(arguments, arguments.member * arguments.nodes // arguments.processes, arguments.join))
    else:
        sys.exit(report(arguments, spread(arguments)))


if __name__ == "__main__":
    main()
