"""What a node has for browsers: the WebSocket, the JavaScript client, the pages."""

from aiohttp import web

from cubecast.net.gateway.websocket import WebSockets
from cubecast.net.settings.exposure import Origins
from cubecast.net.web import pages
from cubecast.net.web.access import WEBSOCKET
from cubecast.net.web.watched import WatchedNode


def routes(node: WatchedNode) -> list[web.RouteDef]:
    sockets = WebSockets(
        node.clients,
        node.config.cluster,
        Origins(node.config.ws_origins),
        lambda: node.security.policy,
        lambda: node.config.limits,
    )
    sockets.on_refused = lambda kind, detail: node.notice(kind, None, detail)
    return [web.get(WEBSOCKET, sockets.handle), *pages.routes()]
