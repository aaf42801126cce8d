"""How many rows a second `verify --follow` looks at, and whether what it remembers stays flat.

    python -m bench.follow_speed --nodes 8 --rows 5000000 --batch 32
    python -m bench.follow_speed --rows 1000000 --batch 1            what nodes write at low rates
    python -m bench.follow_speed --rows 100000000 --looks 100        a long run

Journals of a healthy cluster grow piece by piece and are followed. The yardstick, in the same run: reading and parsing
the same lines and doing nothing with them. Seconds are the processor's, which a busy machine does not change much:
following and reading are one thread each.
"""

import argparse
import gc
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import process_time

import msgspec

from bench.processes import resident_sizes
from cubecast.check.follow.follower import Follower
from cubecast.check.follow.journals import Journals
from cubecast.protocol.families import DEFAULT_PROTOCOL, find
from cubecast.trace.event import RunInfo


class Journal:
    """One node's: every node publishes in turn, and all deliver in that order, so each depends on those before it."""

    def __init__(self, directory: Path, node: int, nodes: int, batch: int) -> None:
        self._path = directory / f"node-{node:05d}-00000-bench.jsonl"
        self._node, self._nodes, self._batch, self._round = node, nodes, batch, 0
        self._write([["start", 0.0, 0], ["subscribe", 0.0, "t"], ["subscribed", 0.0, "t", []]])

    def grow(self, rounds: int) -> None:
        self._write(line for number in range(self._round, self._round + rounds) for line in self._lines(number))
        self._round += rounds

    def _lines(self, number: int) -> Iterator[list]:
        first, time = number * self._batch + 1, float(number)
        digests = list(range(first, first + self._batch))
        for source in range(self._nodes):
            if source == self._node:
                yield ["publish", time, "t", first, self._batch, [], digests]
            yield ["deliver", time, "t", source, 0, first, self._batch, digests]

    def _write(self, lines: Iterable[list]) -> None:
        with self._path.open("ab") as file:
            file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--rows", type=int, default=2_000_000, help="in all journals together")
    parser.add_argument("--batch", type=int, default=32, help="messages of a line")
    parser.add_argument("--looks", type=int, default=10)
    given = parser.parse_args()
    rounds = max(1, given.rows // (given.nodes * (given.nodes + 1) * given.batch * given.looks))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        written = [Journal(directory, node, given.nodes, given.batch) for node in range(given.nodes)]
        info = RunInfo("bench", DEFAULT_PROTOCOL, find(DEFAULT_PROTOCOL).promises)
        follower, taken = Follower([directory], info), 0.0
        for _ in range(given.looks):
            for journal in written:
                journal.grow(rounds)
            began = process_time()
            standing = follower.look()
            taken += process_time() - began
            print(
                f"{standing.verdict} {standing.rows:>12,} rows  {standing.remembered:>8,} publications remembered  "
                f"{resident_sizes()[os.getpid()] / 2**20:6.0f} MiB resident",
                flush=True,
            )
        gc.disable()  # as the follower reads
        journals, began = Journals([directory]), process_time()
        while list(journals.new_lines()):
            pass
        parsed = process_time() - began
    print(
        f"of a processor's second: followed {standing.rows / taken:,.0f} rows, reading alone "
        f"{standing.rows / parsed:,.0f}; lines of {given.batch}"
    )


if __name__ == "__main__":
    main()
