"""What a node has for browsers: the WebSocket, the JavaScript client, the pages."""

from typing import TYPE_CHECKING

from aiohttp import web

from cubecast.net.origins import Origins
from cubecast.net.web import pages
from cubecast.net.web.access import WEBSOCKET
from cubecast.net.web.websocket import WebSockets

if TYPE_CHECKING:
    from cubecast.net.node import LiveNode


def routes(node: "LiveNode") -> list[web.RouteDef]:
    sockets = WebSockets(
        node.clients,
        node.config.cluster,
        Origins(node.config.ws_origins),
        lambda: node.security.policy,
        lambda: node.config.limits,
    )
    sockets.on_refused = lambda kind, detail: node.reception.on_refused(kind, detail)
    return [web.get(WEBSOCKET, sockets.handle), *pages.routes()]
