"""The pages as files: strict policy, nothing inline, nothing from elsewhere, nothing missing."""

import re

import aiohttp
import pytest

from cubecast.net.web import pages
from support.cluster import cluster
from support.running import run
from support.websockets import endpoint

HTML = sorted(pages.STATIC.rglob("*.html"))
TEXT = sorted(path for path in pages.STATIC.rglob("*") if path.suffix in pages.CONTENT_TYPES)
REFERENCE = re.compile(r'(?:src|href)="([^"]+)"')
IMPORT = re.compile(r'^(?:import|export) [^;]*?from "([^"]+)"', re.MULTILINE | re.DOTALL)
ELSEWHERE = re.compile(r"(?:https?:)?//(?!www\.w3\.org/)[\w.-]+\.\w+|url\(|@import")
MOST_LINES = 400


def _name(path):
    return path.relative_to(pages.STATIC).as_posix()


@pytest.mark.parametrize("path", HTML, ids=_name)
def test_nothing_is_inline_and_nothing_is_missing(path):
    text = path.read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", text)
    found = REFERENCE.findall(text)
    assert found
    for one in found:
        assert one.startswith("./") and one[1:] in pages.paths(), one


@pytest.mark.parametrize("path", TEXT, ids=_name)
def test_nothing_comes_from_elsewhere_and_files_are_small(path):
    text = path.read_text()
    allowed = text.replace("wss://example.org:8443/ws", "").replace("url(#arrow)", "")
    assert not ELSEWHERE.search(allowed), ELSEWHERE.search(allowed)
    assert len(text.splitlines()) <= MOST_LINES or path.name == "cubecast.min.js"
    assert "innerHTML" not in text and "eval(" not in text
    if path.suffix == ".js":
        for one in IMPORT.findall(text):
            assert (path.parent / one).is_file(), f"{path} imports {one}"


def test_pages_are_served_with_a_policy_and_known_ones_are_not_sent_again():
    async def main():
        async with endpoint() as node, aiohttp.ClientSession() as session:
            for path in sorted(pages.paths()):
                async with session.get(node.origin + path) as answer:
                    assert answer.status == 200, path
                    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
                    assert "unsafe" not in answer.headers["Content-Security-Policy"]
                    assert answer.content_type in pages.CONTENT_TYPES.values()
                    tag = answer.headers["ETag"]
                async with session.get(node.origin + path, headers={"If-None-Match": tag}) as answer:
                    assert answer.status == 304 and not await answer.read()
            assert {"/", "/chat", "/cubecast.js", "/cubecast.min.js", "/client/client.js"} <= pages.paths()

    run(main())


def test_one_file_is_for_pages_of_any_origin_and_no_other():
    """Of a whole node: its gate refuses what pages of others ask for before anything is served."""

    async def main():
        async with cluster(1, http="127.0.0.1:0") as (node,), aiohttp.ClientSession() as session:
            for path in sorted(pages.paths()):
                url = f"http://{node.http_address}{path}"
                async with session.get(url, headers={"Origin": "https://app.example"}) as answer:
                    allowed = answer.headers.get("Access-Control-Allow-Origin")
                    expected = (200, "*") if path == "/cubecast.min.js" else (403, None)
                    assert (answer.status, allowed) == expected, path

    run(main())
