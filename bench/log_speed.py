"""What the durable log costs: writing and reading it alone, other ways to write, and a cluster with it and without.

Alone: messages a second until all are on the disk, in batches as a turn of a busy node delivers them, and processor
time per message. Other ways: the same batches as rows of an SQLite database, synced with each transaction, and as bare
appends to a file without any index. In a cluster, where everybody talks to all, nobody, one member or every member logs
what is said; the runs take turns, because machines have moods. And half of the members log, the others do not.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from cubecast.experiments.live_load.cluster import Measured, measure_messages
from cubecast.experiments.live_load.load import Load
from cubecast.ids import MessageId
from cubecast.log.record import Entry, Packed, encode_block, pack
from cubecast.log.recovery import open_log
from cubecast.log.store import Store

SIZE = 64
ASKED = 15
"""Percent of throughput that a log may cost a cluster."""
AT_ONCE = 256 << 10
"""Bytes of one commit in the comparison, about what gathers while the one before is synced."""


async def write(directory: Path, messages: int, batch: int) -> dict[str, float]:
    store = await Store.open(directory)
    payloads = [bytes([65 + number % 26]) * SIZE for number in range(batch)]
    began, busy = time.perf_counter(), time.process_time()
    for number in range(messages // batch):
        store.append("speed", MessageId(number % 8, 0, 1 + number // 8 * batch), payloads, time.time())
        if number % 8 == 7:
            await asyncio.sleep(0)  # a turn of the loop
        while not store.has_room:
            await asyncio.sleep(0.001)
    await store.synced(store.ticket)
    written, busy = time.perf_counter() - began, time.process_time() - busy
    began, offset, found = time.perf_counter(), 1, 0
    while records := await store.read("speed", offset, 1 << 20):
        found += sum(len(record.payloads) for record in records)
        offset = records[-1].last + 1
    read = time.perf_counter() - began
    await store.close()
    return {
        "batch": batch,
        "written_per_second": round(found / written),
        "cpu_us_per_message": round(busy / found * 1e6, 3),
        "read_per_second": round(found / read),
    }


def as_rows(directory: Path, blocks: list[bytes], at_once: int) -> None:
    """Each batch with its messages as a row, found by offset."""
    database = sqlite3.connect(directory / "rows", isolation_level=None)
    for pragma in ("page_size=8192", "journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=1000"):
        database.execute(f"PRAGMA {pragma}")
    database.execute("CREATE TABLE b (seq INTEGER PRIMARY KEY, topic, first, many, at, s, i, c, checksum, block)")
    database.execute("CREATE UNIQUE INDEX o ON b (topic, first)")
    row = "(NULL,1,?,?,?,?,?,?,?,?)"
    for begin in range(0, len(blocks), at_once):
        some = blocks[begin : begin + at_once]
        values = [one for n, b in enumerate(some, begin) for one in (n, 1, 0.0, n % 8, 0, n, zlib.crc32(b), b)]
        database.execute("BEGIN IMMEDIATE")
        database.execute(f"INSERT INTO b VALUES {','.join([row] * len(some))}", values)
        database.execute("COMMIT")
    database.close()


def as_appends(directory: Path, blocks: list[bytes], at_once: int) -> None:
    """Nothing but the bytes and their checksums."""
    descriptor = os.open(directory / "appends", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for begin in range(0, len(blocks), at_once):
        some = blocks[begin : begin + at_once]
        os.writev(descriptor, [part for block in some for part in (zlib.crc32(block).to_bytes(4, "little"), block)])
        os.fdatasync(descriptor)
    os.close(descriptor)


def as_log(directory: Path, batches: list[Packed], at_once: int, batch: int) -> None:
    """Segments, index and marks, without the thread and the loop around them."""
    ledger = open_log(directory / "log").ledger
    entries = [
        Entry("speed", 1 + number * batch, many, MessageId(number % 8, 0, 1 + number // 8 * batch), 0.0, *packed)
        for number, (many, *packed) in enumerate(batches)
    ]
    for begin in range(0, len(entries), at_once):
        ledger.commit(entries[begin : begin + at_once])
    ledger.close()


def compare(messages: int, batch: int) -> dict[str, dict[str, float]]:
    """Processor time per message and messages a second of each way, the best of three."""
    batches = [[os.urandom(SIZE) for _ in range(batch)] for _ in range(messages // batch)]
    at_once = max(1, AT_ONCE // (SIZE * batch))
    ways: dict[str, Callable[[Path], None]] = {
        "rows of SQLite": lambda path: as_rows(path, [encode_block(one) for one in batches], at_once),
        "bare appends": lambda path: as_appends(path, [encode_block(one) for one in batches], at_once),
        "this log": lambda path: as_log(path, [pack(one) for one in batches], at_once, batch),
    }
    found = {}
    for name, way in ways.items():
        runs = []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as directory:
                began, busy = time.perf_counter(), time.process_time()
                way(Path(directory))
                runs.append((time.process_time() - busy, time.perf_counter() - began))
        cpu, seconds = min(one for one, _ in runs), min(one for _, one in runs)
        found[name] = {"cpu_us_per_message": round(cpu / messages * 1e6, 3), "per_second": round(messages / seconds)}
    return found


@dataclass
class Way:
    """Runs with so many loggers."""

    loggers: int
    rates: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    def compared(self, without: "Way") -> dict[str, float | str]:
        """Each run with the one without a log before it, under much the same conditions; the median counts. The best
        run of each kind is told, too: which is luckiest decides more there than the log does."""
        by_rate = median(1 - ours / theirs for ours, theirs in zip(self.rates, without.rates, strict=True))
        by_cpu = median(1 - theirs / ours for ours, theirs in zip(self.costs, without.costs, strict=True))
        return {
            "loggers": self.loggers,
            "deliveries_per_second": round(max(self.rates)),
            "cpu_us_per_delivery": round(min(self.costs), 3),
            "loss_percent": round(100 * by_rate, 1),
            "loss_percent_by_cpu": round(100 * by_cpu, 1),
            "best_against_best": round(100 * (1 - max(self.rates) / max(without.rates)), 1),
            "best_against_best_by_cpu": round(100 * (1 - min(without.costs) / min(self.costs)), 1),
            "asked": f"less than {ASKED} %: {'reached' if 100 * max(by_rate, by_cpu) < ASKED else 'missed'}",
        }


def in_a_cluster(members: int, messages: int, runs: int) -> Iterator[dict[str, Any]]:
    """Nobody, one member, everybody logs, in turns."""
    ways = [Way(0), Way(1), Way(members)]
    for _ in range(runs):
        for way in ways:
            found, _ = _run(members, messages, way.loggers)
            way.rates.append(found.rate)
            way.costs.append(found.cpu_seconds / found.deliveries * 1e6)
    for way in ways[1:]:
        yield {"members": members, "without": round(max(ways[0].rates))} | way.compared(ways[0])


def side_by_side(members: int, messages: int, runs: int) -> dict[str, Any]:
    """Half of the members log: what a busy machine does to them it does to the others, too, at the same moment."""
    losses = []
    for _ in range(runs):
        _, costs = _run(members, messages, members // 2)
        logging, others = costs[: members // 2], costs[members // 2 :]
        losses.append(100 * (1 - fmean(others) / fmean(logging)))
    return {
        "members": members,
        "loggers": members // 2,
        "loss_percent_by_cpu_in_each": [round(loss, 1) for loss in sorted(losses)],
        "median": round(median(losses), 1),
    }


def _run(members: int, messages: int, loggers: int) -> tuple[Measured, list[float]]:
    """What was measured, and each member's processor time per delivery."""
    with tempfile.TemporaryDirectory() as directory:
        kept = Path(directory) if loggers else None
        found = measure_messages(Load(members, SIZE, messages=messages // members, data=kept, loggers=loggers))
    if found.lost or found.violations:
        raise SystemExit(f"{found.lost} lost, {found.violations} out of order")
    return found, [seconds / (found.deliveries / members) * 1e6 for seconds in found.cpu_of_members]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=512_000)
    parser.add_argument("--members", type=int, default=8, help="Of the cluster; 0 for none.")
    parser.add_argument("--runs", type=int, default=5, help="Of the cluster, of each kind.")
    parser.add_argument("--only-cluster", action="store_true")
    options = parser.parse_args()
    if not options.only_cluster:
        alone(options.messages)
    if options.members:
        for line in in_a_cluster(options.members, options.messages, options.runs):
            print(json.dumps(line), flush=True)
        print(json.dumps(side_by_side(options.members, options.messages, options.runs)), flush=True)


def alone(messages: int) -> None:
    for batch in (1, 16, 64, 256):
        with tempfile.TemporaryDirectory() as directory:
            many = messages if batch > 1 else messages // 10
            print(json.dumps(asyncio.run(write(Path(directory), many, batch))), flush=True)
    for batch in (16, 256):
        print(json.dumps({"batch": batch} | compare(messages // 4, batch)), flush=True)


if __name__ == "__main__":
    main()
