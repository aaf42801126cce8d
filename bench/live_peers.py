"""Group chat over cubecast and over other messaging systems, side by side in one run on one machine.

    python -m bench.live_peers                          everything, about a quarter of an hour
    python -m bench.live_peers --seconds 2 --repeat 1   shorter, noisier figures
    python -m bench.live_peers --only zenoh --only nats fewer rows; the row they are compared with stays
    python -m bench.live_peers --part latency           one of: chat, ways, sixteen, latency

Every member publishes and subscribes one topic; every delivery is checked for publisher and causal order. Members are
processes of their own. Rows of one table take turns, and of each the best of its repetitions is printed; what came out
of order or was lost is added up over all of them. CPU time is the members', without servers.

The last row of a table of latencies is no system: TCP between all members and nothing else, as fast as Python can be.
What is aimed at was set on another machine; the line below the table carries it over (`bench/peers/reference.py`).
`make compiled` beforehand, and cubecast has a second row in each comparison: the same sources, compiled.

Systems whose Python package or server program is not installed are left out with a line that says so. Debian's packages
nats-server, redis-server, mosquitto and rabbitmq-server have the programs; they are started here, on loopback ports of
their own, and stopped again. There is no corosync: neither the Python package index nor Debian has a Python binding of
its closed process groups, so a Python user has nothing to pick. Nothing else should run meanwhile: on two cores any
other process shows in the latencies.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from bench.peers.known import FLOOR, PEERS, Known
from bench.peers.reference import aim_here
from cubecast.experiments.live_load.cluster import Measured, measure
from cubecast.experiments.live_load.load import Load

CHAT = Load(members=8, size=64)
NAMED_SIXTEEN = 80
"""Bytes: a message that names what sixteen members have delivered does not fit into 64."""
COMPILED = Path(__file__).parents[1] / "out" / "compiled"
"""Where `make compiled` puts it."""
AIMED_AT = 100.0
"""Messages/s of each member, at which latencies are known from elsewhere."""
PARTS = ("chat", "ways", "sixteen", "latency")


@dataclass(frozen=True)
class Row:
    name: str
    load: Load
    peer: Known | None = None
    """cubecast when None."""
    is_compiled: bool = False

    def measure(self, seconds: float) -> Measured:
        if self.peer is None:
            with compiled_first() if self.is_compiled else nullcontext():
                return measure(self.load, seconds)
        with self.peer.running() as body:
            return measure(self.load, seconds, body=body)


@dataclass(frozen=True)
class Table:
    part: str
    title: str
    rows: tuple[Row, ...]
    """The first is what the others are compared with."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measured window (default 3)")
    parser.add_argument("--repeat", type=int, default=2, help="measurements of each row; the best counts (default 2)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="rows with this in their name")
    parser.add_argument("--part", action="append", choices=PARTS, help="these tables (default all)")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that no server stays behind
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; best of {asked.repeat} windows of {asked.seconds:g} s"
    )
    if not COMPILED.exists():
        print("cubecast, compiled: left out, it is not built (make compiled)")
    for table in tables(present(print)):
        if table.part in (asked.part or PARTS):
            show(chosen(table, asked.only), asked.seconds, asked.repeat)


def present(say: Callable[[str], None]) -> list[Known]:
    found = []
    for peer in PEERS:
        if (missing := peer.missing()) is None:
            found.append(peer)
        else:
            say(f"{peer.name}: left out, {missing}")
    return found


def tables(peers: list[Known]) -> list[Table]:
    sixteen = replace(CHAT, members=16, size=NAMED_SIXTEEN)
    ways = {
        "batches and a callback": CHAT,
        "one `async for` step per message": replace(CHAT, read="iterate"),
        "one publish call per turn": replace(CHAT, publish="single"),
        "1 KiB messages": replace(CHAT, size=1024),
    }
    made = [
        Table("chat", "8 members, 64 bytes, as fast as it goes", _side_by_side(CHAT, peers)),
        Table("ways", "cubecast, other ways to use it", tuple(Row(name, load) for name, load in ways.items())),
        Table(
            "sixteen",
            f"cubecast, {NAMED_SIXTEEN} bytes",
            (Row("8 members", replace(sixteen, members=8)), Row("16 members", sixteen)),
        ),
    ]
    for rate in (AIMED_AT, 1000.0):
        slow = replace(CHAT, publish="rate", rate=rate)
        title = f"8 members, 64 bytes, {rate:.0f} messages/s each"
        made.append(Table("latency", title, (*_side_by_side(slow, peers), Row(FLOOR.name, slow, FLOOR))))
    return made


def _side_by_side(load: Load, peers: list[Known]) -> tuple[Row, ...]:
    compiled = [Row("cubecast, compiled", load, is_compiled=True)] if COMPILED.exists() else []
    return Row("cubecast", load), *compiled, *(Row(peer.name, load, peer) for peer in peers)


@contextmanager
def compiled_first() -> Iterator[None]:
    """Processes that are started meanwhile look for modules where their parent would."""
    sys.path.insert(0, str(COMPILED))
    try:
        yield
    finally:
        sys.path.remove(str(COMPILED))


def chosen(table: Table, only: list[str]) -> Table:
    first, *others = table.rows
    kept = [row for row in others if not only or any(name.lower() in row.name.lower() for name in only)]
    return replace(table, rows=(first, *kept))


def show(table: Table, seconds: float, repeat: int) -> None:
    print(f"\n{table.title}", flush=True)
    runs: dict[str, list[Measured]] = {row.name: [] for row in table.rows}
    for _ in range(repeat):
        for row in table.rows:
            runs[row.name].append(row.measure(seconds))
    first = best(runs[table.rows[0].name])
    for name, measured in runs.items():
        print(line(name, measured, None if name == table.rows[0].name else first), flush=True)
    if first.load.rate == AIMED_AT:
        print(f"  {aim_here({name: percentiles(best(measured)) for name, measured in runs.items()})}", flush=True)


def best(runs: list[Measured]) -> Measured:
    if runs[0].load.rate:
        return min(runs, key=lambda one: one.percentile(99))
    return max(runs, key=lambda one: one.rate)


def percentiles(one: Measured) -> tuple[float, float]:
    """p50 and p99 in ms."""
    return one.percentile(50), one.percentile(99)


def line(name: str, runs: list[Measured], first: Measured | None) -> str:
    one = best(runs)
    wrong = f"{sum(run.violations for run in runs):,} out of order, {sum(run.lost for run in runs):,} lost"
    if one.load.rate:
        half, most = percentiles(one)
        ratio = "" if first is None else f"  {half / percentiles(first)[0]:5.2f} × the first"
        spread = f"p50 {half:.3f} ms{ratio:19}  p99 {most:.3f} ms"
        return f"  {name:34} {spread}  ({len(one.latencies):,} deliveries; {wrong})"
    ratio = "" if first is None else f"  {one.rate / first.rate:5.2f} × the first"
    cpu = 1e6 * one.cpu_seconds / max(1, one.deliveries)
    return f"  {name:34} {one.rate / 1e6:6.3f} M deliveries/s{ratio:19}  {cpu:5.2f} µs CPU each  {wrong}"


if __name__ == "__main__":
    main()
