"""Is this process alive, does this node take part, what does it say about itself."""

from aiohttp import web

from cubecast.errors import Closed
from cubecast.net.web.answers import json_answer
from cubecast.net.web.cache import AnswerCache
from cubecast.net.web.watched import WatchedNode


def routes(node: WatchedNode) -> list[web.RouteDef]:
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
