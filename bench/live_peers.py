"""Group chat over cubecast and over other messaging systems, side by side in one run on one machine.

    python -m bench.live_peers                  everything, a few minutes
    python -m bench.live_peers --seconds 2      shorter windows, noisier figures

Every member publishes and subscribes one topic; every delivery is checked for publisher and causal order. Members are
processes of their own. Systems whose Python package is not installed are left out with a line that says so. Nothing
else should run meanwhile: on two cores any other process shows in the latencies.
"""

import argparse
import importlib
import os
from collections.abc import Callable
from dataclasses import replace

from cubecast.experiments.live_load.cluster import Measured, measure
from cubecast.experiments.live_load.member import Load

PEERS = {
    "ZeroMQ mesh": ("zmq", "bench.peers.zeromq", "mesh"),
    "ZeroMQ proxy": ("zmq", "bench.peers.zeromq", "proxy"),
    "Zenoh mesh": ("zenoh", "bench.peers.zenoh", "mesh"),
}
CHAT = Load(members=8, size=64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measured window")
    seconds = parser.parse_args().seconds
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; windows of {seconds:g} s\n")
    peers = _installed()
    print("8 members, 64 bytes, as fast as it goes")
    ours = _row("cubecast, batches and a callback", measure(CHAT, seconds), None)
    for name, body in peers.items():
        _row(name, measure(CHAT, seconds, body=body), ours)
    print("\ncubecast, other ways to use it")
    for name, load in _variants().items():
        _row(name, measure(load, seconds), ours)
    for rate in (100.0, 1000.0):
        print(f"\n8 members, 64 bytes, {rate:.0f} messages/s each")
        slow = replace(CHAT, publish="rate", rate=rate)
        _latency("cubecast", measure(slow, seconds))
        for name, body in peers.items():
            _latency(name, measure(slow, seconds, body=body))


def _variants() -> dict[str, Load]:
    return {
        "one `async for` step per message": replace(CHAT, read="iterate"),
        "one publish call per turn": replace(CHAT, publish="single"),
        "1 KiB messages": replace(CHAT, size=1024),
        "16 members": replace(CHAT, members=16, size=80),
    }


def _installed() -> dict[str, Callable[..., None]]:
    found = {}
    for name, (package, module, function) in PEERS.items():
        try:
            importlib.import_module(package)
        except ImportError:
            print(f"{name}: left out, the Python package {package!r} is not installed")
            continue
        found[name] = getattr(importlib.import_module(module), function)
    return found


def _row(name: str, measured: Measured, ours: Measured | None) -> Measured:
    ratio = "" if ours is None else f"  {measured.rate / ours.rate:5.2f} × cubecast"
    wrong = f"{measured.violations:,} out of order, {measured.lost:,} lost"
    cpu = 1e6 * measured.cpu_seconds / max(1, measured.deliveries)
    print(f"  {name:34} {measured.rate / 1e6:6.3f} M deliveries/s{ratio}  {cpu:5.2f} µs CPU each  {wrong}", flush=True)
    return measured


def _latency(name: str, measured: Measured) -> None:
    wrong = f"{measured.violations:,} out of order, {measured.lost:,} lost"
    spread = f"p50 {measured.percentile(50):.3f} ms  p99 {measured.percentile(99):.3f} ms"
    print(f"  {name:34} {spread}  ({len(measured.latencies):,} deliveries; {wrong})", flush=True)


if __name__ == "__main__":
    main()
