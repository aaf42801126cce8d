"""JSON for pages and programs: the cube, topics, rates, what is held, what went wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from cubecast.errors import BadInput, Closed
from cubecast.net.observe.samples import MOST
from cubecast.net.web import views
from cubecast.net.web.answers import json_answer
from cubecast.net.web.cache import AnswerCache
from cubecast.net.web.observer import Observer
from cubecast.net.web.watched import WatchedNode
from cubecast.trace.journal import VERDICT

MOST_VERDICT = 64 << 10
"""Bytes of a verdict that are read."""


def routes(node: WatchedNode) -> list[web.RouteDef]:
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
        web.get("/api/rates.json", answering(lambda ask: views.rates(seen(), _number(ask, "last") or MOST))),
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
