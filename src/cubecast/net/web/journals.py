"""A node's journal for a judge who has no files of this machine.

A judge asks for what came behind the bytes that it has, and leaves its verdict here, where the node's page shows it.
"""

import asyncio
import os
import re
from pathlib import Path

from aiohttp import web

from cubecast.net.web.routes import json_answer
from cubecast.net.web.watched import WatchedNode
from cubecast.trace.journal import JOURNAL_SUFFIX, VERDICT

MOST_AT_ONCE = 1 << 20
"""Bytes of a journal in one answer."""
NAME = re.compile(r"node-\d{5,20}-\d{5,10}-[A-Za-z0-9_-]{1,80}(\.lost)?\.jsonl")


def journal_routes(node: WatchedNode) -> list[web.RouteDef]:
    def directory() -> Path:
        told = node.tracing()["directory"]
        if told is None:
            raise web.HTTPConflict(text="this node writes no journal; start it with --trace, or: cubecast trace on\n")
        return Path(told)

    async def listed(_: web.Request) -> web.Response:
        return json_answer({"node": node.status()["node"], "journals": await asyncio.to_thread(_sizes, directory())})

    async def read(request: web.Request) -> web.Response:
        name, begin = request.query.get("name", ""), request.query.get("from", "0")
        if not NAME.fullmatch(name) or not (begin.isascii() and begin.isdecimal() and len(begin) <= 18):
            raise web.HTTPBadRequest(text="say name=…, as /trace/journals lists it, and from=BYTE\n")
        try:
            data = await asyncio.to_thread(_piece, directory() / name, int(begin))
        except FileNotFoundError:
            raise web.HTTPNotFound(text=f"there is no journal {name}\n") from None
        return web.Response(body=data, content_type="application/octet-stream")

    async def judged(request: web.Request) -> web.Response:
        await asyncio.to_thread(_leave, directory(), await request.read())
        return json_answer({})

    return [
        web.get("/trace/journals", listed),
        web.get("/trace/journal", read),
        web.post("/trace/verdict", judged),
    ]


def _sizes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(directory.glob(f"node-*{JOURNAL_SUFFIX}"))}


def _piece(path: Path, begin: int) -> bytes:
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(MOST_AT_ONCE)


def _leave(directory: Path, verdict: bytes) -> None:
    """As a whole or not at all."""
    draft = directory / f"{VERDICT}.{os.getpid()}"
    draft.write_bytes(verdict)
    draft.replace(directory / VERDICT)
