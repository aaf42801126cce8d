"""A process that keeps a log on a disk that fails it, or reads one: `python -m bench.attack.keeper write|read …`.

Says in lines of JSON what it was told is durable, and what it got when it read from the beginning.
"""

import asyncio
import errno
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from cubecast import Gap, Node
from cubecast.errors import NotDurable
from cubecast.log import history
from cubecast.net.links.loop import run

MESSAGES = 400
SIZE = 1000
QUOTA = 250_000
FAILS_FROM, WELL_FROM = 100, 200
"""Messages between which no sync succeeds."""
NODE: dict[str, Any] = {"patience": 1.0, "round_length": 0.25, "log": (">",)}


def say(*what: Any) -> None:
    os.write(1, (json.dumps(what) + "\n").encode())


def _refuse(descriptor: int) -> None:
    raise OSError(errno.EIO, "the disk does not answer")


async def recovered(node: Node) -> None:
    """The log tries again by itself, a few times a second; who publishes meanwhile is told that nothing is durable."""
    while (await node.status())["log"]["trouble"] is not None:
        await asyncio.sleep(0.05)


async def write(data: Path, how: str) -> None:
    quota = {"log_quota": QUOTA} if how == "full" else {}
    kept = os.fsync, os.fdatasync
    async with Node(data=data, **NODE, **quota) as node:
        for number in range(1, MESSAGES + 1):
            if how == "sync" and number == FAILS_FROM:
                os.fsync = os.fdatasync = _refuse  # type: ignore[assignment]
            if how == "sync" and number == WELL_FROM:
                os.fsync, os.fdatasync = kept
                await recovered(node)
            if how == "clock" and number in (100, 200, 300):
                jump = {100: -86_400.0, 200: 86_400.0, 300: 0.0}[number]
                history.time = lambda jump=jump: time.time() + jump  # type: ignore[attr-defined]
            try:
                await node.publish("t", f"{number} ".ljust(SIZE, ".").encode(), wait="durable", timeout=5)
                say("durable", number)
            except (NotDurable, TimeoutError):
                say("not", number)
        say("done")
        await asyncio.Event().wait()  # until it is killed


async def read(data: Path) -> None:
    async with Node(data=data, **NODE) as node:
        subscription = node.subscribe("t", since="beginning", gaps="yield")
        await subscription.live()
        await node.publish("t", b"0 end")
        async for one in subscription:
            if isinstance(one, Gap):
                say("gap", one.reason)
            elif (number := int(one.data.split(b" ", 1)[0])) == 0:
                break
            else:
                say("got", number)
        say("done")


if __name__ == "__main__":
    run(write(Path(sys.argv[2]), sys.argv[3]) if sys.argv[1] == "write" else read(Path(sys.argv[2])))
