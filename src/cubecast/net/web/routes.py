"""What is answered in JSON (health, members, topics, rates, what is held, traces, journals), and what browsers need."""

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from time import monotonic, thread_time
from typing import Any, Generic, TypeVar

import msgspec
from aiohttp import web

from cubecast.errors import BadInput, Closed
from cubecast.net.gateway.websocket import WebSockets
from cubecast.net.observe.recent import MOST_SAMPLES
from cubecast.net.settings.security import Origins
from cubecast.net.web import pages, views
from cubecast.net.web.access import WEBSOCKET
from cubecast.net.web.observer import Observer, WatchedNode
from cubecast.trace.journal import JOURNAL_SUFFIX, VERDICT

_encode = msgspec.json.Encoder().encode
FRESH = {"Cache-Control": "no-store"}


def json_answer(data: Any, status: int = 200) -> web.Response:
    return web.Response(body=_encode(data), status=status, content_type="application/json", headers=FRESH)


def health_routes(node: WatchedNode) -> list[web.RouteDef]:
    async def alive(_: web.Request) -> web.Response:
        return json_answer({"alive": True})

    async def ready(_: web.Request) -> web.Response:
        reasons = node.reasons_not_ready()
        return json_answer({"ready": not reasons, "reasons": reasons}, 503 if reasons else 200)

    told = AnswerCache(node.status)

    async def status(_: web.Request) -> web.Response:
        try:
            return json_answer(told())
        except Closed as error:
            return json_answer({"error": str(error)}, 503)

    return [web.get("/healthz", alive), web.get("/readyz", ready), web.get("/status.json", status)]


SWITCH = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


def trace_routes(node: WatchedNode) -> list[web.RouteDef]:
    async def look(_: web.Request) -> web.Response:
        return json_answer(node.tracing())

    async def switch(request: web.Request) -> web.Response:
        on = SWITCH.get(request.query.get("on", ""))
        if on is None:
            return json_answer({"error": "say on=true or on=false"}, 400)
        try:
            directory = node.switch_tracing(request.query.get("run", "trace") if on else None)
        except (BadInput, Closed) as error:
            return json_answer({"error": str(error)}, 409)
        return json_answer(node.tracing() | {"directory": str(directory)})

    return [web.get("/trace", look), web.post("/trace", switch)]


MOST_VERDICT = 64 << 10
"""Bytes of a verdict that are read."""
MOST_DIGITS = 19
"""Of a number that is asked with: ids have up to 63 bits."""


def answers_routes(node: WatchedNode) -> list[web.RouteDef]:
    def seen() -> Observer:
        if node.observer is None:
            raise Closed("this node does not observe itself")
        return node.observer

    topics, held = AnswerCache(lambda: views.topics(seen())), AnswerCache(lambda: views.held(seen()))

    def answering(view: Callable[[web.Request], dict[str, Any]]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.Response:
            try:
                return json_answer(view(request))
            except Closed as error:
                return json_answer({"error": str(error)}, 503)
            except BadInput as error:
                return json_answer({"error": str(error)}, 400)

        return handle

    return [
        web.get("/api/cube.json", answering(lambda ask: _cube(seen(), ask))),
        web.get("/api/topics.json", answering(lambda _: topics())),
        web.get("/api/rates.json", answering(lambda ask: views.rates(seen(), _number(ask, "last") or MOST_SAMPLES))),
        web.get("/api/held.json", answering(lambda _: held())),
        web.get("/api/faults.json", answering(lambda _: views.faults(seen()) | {"verdict": last_verdict(node)})),
    ]


def last_verdict(node: WatchedNode) -> dict[str, Any] | None:
    """What `cubecast verify --follow` last said about the directory this node's journal is in."""
    directory = node.tracing()["directory"]
    path = Path(directory or "") / VERDICT
    try:
        with path.open("rb") as file:
            said = json.loads(file.read(MOST_VERDICT))
        first = next(iter(said["witnesses"] or said["unknown_because"]), None)
        because = f"{first['property']}: {first['reason']}" if isinstance(first, dict) else first
        told = {name: said[name] for name in ("verdict", "rows", "up_to", "at")}
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return told | {"because": because} if directory else None


def _cube(observer: Observer, request: web.Request) -> dict[str, Any]:
    return views.cube(observer, _number(request, "root"), request.query.get("topic"))


def _number(request: web.Request, name: str) -> int | None:
    text = request.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
        raise BadInput(f"{name} is a number, not {text!r}")
    return int(text)


def browser_routes(node: WatchedNode) -> list[web.RouteDef]:
    sockets = WebSockets(
        node.clients,
        node.config.cluster,
        Origins(node.config.ws_origins),
        lambda: node.security.policy,
        lambda: node.config.limits,
        lambda kind, detail: node.notice(kind, None, detail),
    )
    return [web.get(WEBSOCKET, sockets.handle), *pages.routes()]


# A node's journal for a judge who has no files of this machine.
#
# A judge asks for what came behind the bytes that it has, and leaves its verdict here, where the node's page shows it.

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


# Answers that take long to make are given again for a while: looking at a node must not be what keeps it busy.
#
# What an answer costs is the processor time of the event loop's thread. The time of day would count what other
# processes and threads did meanwhile, too: on a busy machine a cheap answer would seem dear, and grow old just when
# people look.

Answer = TypeVar("Answer")

QUICK = 0.02
"""Seconds of work an answer may take to be made anew every time."""
SHARE = 20
"""Otherwise it is made once in so many times as long as it took: at most this part of a core goes into it."""


class AnswerCache(Generic[Answer]):
    def __init__(
        self,
        make: Callable[[], Answer],
        clock: Callable[[], float] = monotonic,
        worked: Callable[[], float] = thread_time,
    ) -> None:
        self._make, self._clock, self._worked = make, clock, worked
        self._kept: tuple[float, Answer] | None = None
        """Until when, and what."""

    def __call__(self) -> Answer:
        if self._kept is not None and self._clock() < self._kept[0]:
            return self._kept[1]
        before = self._worked()
        answer = self._make()
        took = self._worked() - before
        self._kept = None if took < QUICK else (self._clock() + SHARE * took, answer)
        return answer
