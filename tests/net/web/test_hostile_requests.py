"""Requests that nobody means: answered or refused in a line, and every line of the log is one of ours."""

import asyncio
import json
import logging

import pytest

from cubecast.net.settings.logs import JsonLines
from support.cluster import cluster
from support.running import run

END = b"\r\nConnection: close\r\n\r\n"
REQUESTS = {
    "a host of raw bytes": b"GET /healthz HTTP/1.1\r\nHost: \xff\xfe\x80" + END,
    "an origin of raw bytes": b"GET /ws HTTP/1.1\r\nHost: localhost\r\nOrigin: http://\xff\xfe" + END,
    "a path of raw bytes": b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost" + END,
    "no HTTP": b"\x00\x01\x02 nonsense" + END,
    "a header without an end": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 9000 + END,
    "a length that is none": b"POST /trace HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1" + END,
    "a host that is no address": b"GET / HTTP/1.1\r\nHost: [::1" + END,
    "two hosts": b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: elsewhere" + END,
}


async def answer(address, request):
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(request)
    async with asyncio.timeout(30):
        found = await reader.read()
    writer.close()
    return found


@pytest.mark.parametrize("case", REQUESTS)
def test_they_are_refused_without_a_traceback(case, caplog):
    async def main():
        async with cluster(1, http="127.0.0.1:0") as (node,):
            found = await answer(node._live.web.address, REQUESTS[case])
            status = int(found.split(b" ", 2)[1])
            assert 400 <= status < 500, found
            assert b"Traceback" not in found and b"aiohttp" not in found and b"Python" not in found, found

    with caplog.at_level(logging.INFO):
        run(main())
    assert not [record for record in caplog.records if record.exc_info], caplog.text
    for record in caplog.records:
        json.loads(JsonLines().format(record))


@pytest.mark.parametrize("path", ["/healthz", "/nothing", "/", "/status.json"])
def test_nobody_is_told_what_the_server_is_made_of(path):
    async def main():
        async with cluster(1, http="127.0.0.1:0") as (node,):
            request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            head = (await answer(node._live.web.address, request.encode())).split(b"\r\n\r\n")[0]
            assert b"Server: cubecast\r\n" in head + b"\r\n" and b"aiohttp" not in head

    run(main())
