"""How many rows a second `verify --follow` looks at, and whether what it remembers stays flat.

    python -m bench.follow_speed --nodes 8 --rows 5000000 --batch 32

Journals of a healthy cluster are written first, then followed piece by piece as if they grew. The yardstick, in the
same run: reading and parsing the same lines and doing nothing with them.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from cubecast.check.follow.follower import Follower
from cubecast.check.follow.journals import Journals
from cubecast.protocol.families import DEFAULT_PROTOCOL, find
from cubecast.trace.event import RunInfo


def lines(node: int, nodes: int, rounds: int, batch: int) -> Iterator[list]:
    """Every node publishes in turn, and all deliver in that order: each publication depends on those before it."""
    yield ["start", 0.0, 0]
    yield ["subscribe", 0.0, "t"]
    yield ["subscribed", 0.0, "t", []]
    for number in range(rounds):
        first, time = number * batch + 1, float(number)
        digests = list(range(first, first + batch))
        for source in range(nodes):
            if source == node:
                yield ["publish", time, "t", first, batch, [], digests]
            yield ["deliver", time, "t", source, 0, first, batch, digests]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--rows", type=int, default=2_000_000, help="in all journals together")
    parser.add_argument("--batch", type=int, default=32, help="messages of a line")
    parser.add_argument("--looks", type=int, default=10)
    given = parser.parse_args()
    rounds = max(given.looks, given.rows // (given.nodes * (given.nodes + 1) * given.batch))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        told = {
            node: [json.dumps(one) + "\n" for one in lines(node, given.nodes, rounds, given.batch)]
            for node in range(given.nodes)
        }
        info = RunInfo("bench", DEFAULT_PROTOCOL, find(DEFAULT_PROTOCOL).promises)
        follower, taken = Follower([directory], info), 0.0
        for look in range(given.looks):
            for node, text in told.items():
                with (directory / f"node-{node:05d}-00000-bench.jsonl").open("a") as file:
                    file.writelines(text[len(text) * look // given.looks : len(text) * (look + 1) // given.looks])
            began = perf_counter()
            standing = follower.look()
            taken += perf_counter() - began
            print(f"{standing.verdict} {standing.rows:>12,} rows  {standing.remembered:>8,} publications remembered")
        journals, began = Journals([directory]), perf_counter()
        while list(journals.new_lines()):
            pass
        parsed = perf_counter() - began
    print(f"followed {standing.rows / taken:,.0f} rows/s; reading alone {standing.rows / parsed:,.0f} rows/s")


if __name__ == "__main__":
    main()
