"""Answers in JSON, small and never from a cache."""

from typing import Any

import msgspec
from aiohttp import web

_encode = msgspec.json.Encoder().encode
FRESH = {"Cache-Control": "no-store"}


def json_answer(data: Any, status: int = 200) -> web.Response:
    return web.Response(body=_encode(data), status=status, content_type="application/json", headers=FRESH)
