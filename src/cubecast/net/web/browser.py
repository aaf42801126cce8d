"""What a node has for browsers: the WebSocket, the JavaScript client, the pages."""

from typing import TYPE_CHECKING

from aiohttp import web

from cubecast.net.gateway.websocket import WebSockets
from cubecast.net.settings.exposure import Origins
from cubecast.net.web import pages
from cubecast.net.web.access import WEBSOCKET

if TYPE_CHECKING:
    from cubecast.net.live_node import LiveNode


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
