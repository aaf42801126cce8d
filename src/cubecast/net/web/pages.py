"""The pages, scripts and styles of this package: plain files, read once, served without anything from elsewhere.

They hold no secrets, so everybody may have them; what they show they ask for themselves, with whatever token the
person in front of them has.
"""

from collections.abc import Awaitable, Callable
from hashlib import blake2b
from pathlib import Path

from aiohttp import web

STATIC = Path(__file__).parent / "static"
CONTENT_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
PLACES = {"page/index.html": "/", "chat/index.html": "/chat"}
"""Files whose address is not their name."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing inline, nothing foreign: what a client publishes is never taken for a part of a page."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

FOR_ANY_PAGE = {"cubecast.min.js": {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}}
"""Pages of other origins may load it; whether they may use the node is another question (`--ws-origin`)."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def routes() -> list[web.RouteDef]:
    files = sorted(path for path in STATIC.rglob("*") if path.suffix in CONTENT_TYPES)
    names = {path: path.relative_to(STATIC).as_posix() for path in files}
    return [web.get(PLACES.get(name, f"/{name}"), _handler(path)) for path, name in names.items()]


def paths() -> frozenset[str]:
    """Where they are found."""
    return frozenset(route.path for route in routes())


def _handler(path: Path) -> Handler:
    content = path.read_bytes()
    tag = blake2b(content, digest_size=12).hexdigest()
    kind = CONTENT_TYPES[path.suffix]

    async def serve(request: web.Request) -> web.StreamResponse:
        is_known = any(one.value in (tag, "*") for one in request.if_none_match or ())
        answer = (
            web.Response(status=304) if is_known else web.Response(body=content, content_type=kind, charset="utf-8")
        )
        answer.etag = tag
        answer.headers.update(HEADERS | FOR_ANY_PAGE.get(path.name, {}))
        return answer

    return serve
