"""What is answered in JSON (health, members, topics, rates, what is held, the trace), and what browsers need."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from cubecast.errors import BadInput, Closed
from cubecast.net.gateway.websocket import WebSockets
from cubecast.net.observe.recent import MOST_SAMPLES
from cubecast.net.settings.exposure import Origins
from cubecast.net.web import pages, views
from cubecast.net.web.access import WEBSOCKET
from cubecast.net.web.cache import AnswerCache
from cubecast.net.web.observer import Observer
from cubecast.net.web.watched import WatchedNode
from cubecast.trace.journal import VERDICT

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
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
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
