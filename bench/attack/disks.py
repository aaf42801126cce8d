"""Disks that are full, refuse to promise, or change what they hold; clocks that jump. Then kill −9, and a second life.

What was called durable must be there in the second life, in order, once; where bits were changed, be it there or told.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from bench.attack.keeper import WELL_FROM
from bench.attack.rows import Row

FLIPS = 4
"""Logs that are damaged, one bit each."""


async def _run(*arguments: str, kill: bool) -> list[list[Any]]:
    """What it said; killed when it is done."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.attack.keeper", *arguments), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    said: list[list[Any]] = []
    try:
        while line := await process.stdout.readline():
            said.append(json.loads(line))
            if said[-1] == ["done"] and kill:
                process.kill()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    return said


async def keep(name: str, how: str, seed: int, directory: Path) -> Row:
    row, data = Row(name), directory / "data"
    written = await _run("write", str(data), how, kill=True)
    compare(row, written, await _run("read", str(data), kill=False), may_tell=False)
    late = [line[1] for line in written if line[0] == "not" and line[1] >= WELL_FROM]
    if how == "sync" and late:
        row.fault(f"{len(late)} were not durable although the disk was well again, the first {late[0]}")
    return row


async def flip(name: str, seed: int, directory: Path) -> Row:
    row, random = Row(name), Random(seed)
    for number in range(FLIPS):
        data = directory / f"data-{number}"
        written = await _run("write", str(data), "plain", kill=True)
        segment = max(data.glob("*.segment"), key=lambda path: path.stat().st_size)
        content = bytearray(segment.read_bytes())
        # One of them in the last message, where nothing comes behind that would tell of it.
        end = (
            content.rindex(b"400 ...") + 4
            if number == 0
            else random.randrange(len(content) // 8, len(content) * 7 // 8)
        )
        content[end] ^= 1 << random.randrange(8)
        segment.write_bytes(content)
        compare(row, written, await _run("read", str(data), kill=False), may_tell=True)
    return row


def compare(row: Row, written: list[list[Any]], read: list[list[Any]], *, may_tell: bool) -> None:
    durable = [line[1] for line in written if line[0] == "durable"]
    refused = sum(line[0] == "not" for line in written)
    got = [line[1] for line in read if line[0] == "got"]
    told = sum(line[0] == "gap" for line in read)
    row.counts += f"{len(durable)} durable, {refused} refused, {len(got)} read, {told} gaps told; "
    findings = row.findings
    findings.published += len(durable) + refused
    findings.delivered += len(got)
    findings.gaps += told
    if ["done"] not in written or ["done"] not in read:
        row.fault("it did not get to its end")
    for number in sorted(set(durable) - set(got)):
        if not (may_tell and told):
            findings.note("lost", f"{number} was called durable")
    for before, after in pairwise(got):
        if after == before:
            findings.note("doubled", f"{after}")
        elif after < before:
            findings.note("disordered", f"{after} after {before}")


def _attack(name: str, how: str) -> Callable[[int, Path], Awaitable[Row]]:
    return lambda seed, directory: keep(name, how, seed, directory)


ATTACKS: dict[str, Callable[[int, Path], Awaitable[Row]]] = {
    "disk full": _attack("disk full", "full"),
    "failing sync": _attack("failing sync", "sync"),
    "clock jumps": _attack("clock jumps", "clock"),
    "bit flips in a log": lambda seed, directory: flip("bit flips in a log", seed, directory),
}
