"""`python -m bench.attack`: everything, one after the other, in less than fifteen minutes; a table at the end.

Every attack is made on processes of their own, prints its seed, is bounded in time and judged by what the applications
recorded (`experiments/live_faults/recorded.py`), not by what nodes say of themselves. All zeros is what is promised.
Exit code 1 when there is anything else. `--only` takes a part of names; `--seed` repeats a run.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.attack import accidents, clients, disks, packets
from bench.attack.rows import Row, table

LONGEST = 150.0
"""Seconds for one attack; it is given up then, and that is a mistake."""

Attack = Callable[[int, Path], Awaitable[Row]]


def attacks() -> dict[str, Attack]:
    found: dict[str, Attack] = {}
    for one in accidents.ALL:
        found[one.name] = lambda seed, directory, one=one: accidents.suffer(one, seed, directory)  # type: ignore[misc]
    return found | packets.attacks() | disks.ATTACKS | clients.ATTACKS


async def carry_out(name: str, attack: Attack, seed: int, directory: Path) -> Row:
    began = time.monotonic()
    try:
        async with asyncio.timeout(LONGEST):
            row = await attack(seed, directory)
    except TimeoutError:
        row = Row(name)
        row.fault(f"given up after {LONGEST:g} s")
    row.seconds = time.monotonic() - began
    print(f"{name}: seed {seed}, {row.counts or 'nothing counted'}, {row.mistakes} mistakes", flush=True)
    for note in [*row.notes, *row.findings.witnesses][:8]:
        print(f"    {note}", flush=True)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="attacks whose name holds this")
    options = parser.parse_args()
    rows = []
    for number, (name, attack) in enumerate(attacks().items()):
        if options.only in name:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
                rows.append(asyncio.run(carry_out(name, attack, options.seed * 1000 + number, Path(directory))))
    print(f"\n{table(rows)}")
    mistakes = sum(row.mistakes for row in rows)
    print(f"\n{len(rows)} attacks in {sum(row.seconds for row in rows):.0f} s, {mistakes} mistakes")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
