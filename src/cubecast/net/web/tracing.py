"""`/trace`: is a journal written, and switching it on and off."""

from aiohttp import web

from cubecast.errors import BadInput, Closed
from cubecast.net.web.answers import json_answer
from cubecast.net.web.watched import WatchedNode

SWITCH = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


def routes(node: WatchedNode) -> list[web.RouteDef]:
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
