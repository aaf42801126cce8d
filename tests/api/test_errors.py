"""Errors say who is at fault, whether it happened, and what to do; at a node and at a thin client alike."""

import asyncio

import pytest

import cubecast
from support.running import run

SIDES = pytest.mark.parametrize("thin", [False, True], ids=["node", "thin"])


@SIDES
def test_a_log_that_is_not_kept(thin: bool):
    async def main() -> None:
        async with cubecast.Node() as node, cubecast.connect(node.address) as client:
            with pytest.raises(cubecast.NotKept, match="keeps no log"):
                await (client if thin else node).subscribe("t", since="beginning").ready()

    run(main())


@SIDES
def test_nothing_that_comes_in_time_says_on_which_topic_and_for_how_long(thin: bool):
    async def main() -> None:
        async with cubecast.Node() as node, cubecast.connect(node.address) as client:
            heard = (client if thin else node).subscribe("quiet.*")
            with pytest.raises(TimeoutError, match=r"nothing came on quiet\.\* for 0\.01 s"):
                await heard.next(timeout=0.01)

    run(main())


def test_nobody_at_an_address():
    async def main() -> None:
        with pytest.raises(cubecast.Unreachable, match=r"cubecast node --listen 127\.0\.0\.1:1"):
            await cubecast.connect("127.0.0.1:1", timeout=0.01)
        with pytest.raises(cubecast.Unreachable, match=r"cubecast node --listen 127\.0\.0\.1:1"):
            await cubecast.Node(join="127.0.0.1:1").start()

    run(main())


def test_an_http_port_is_told_from_a_node():
    async def main() -> None:
        async with cubecast.Node(http="127.0.0.1:0") as node:
            assert node.http_address is not None
            with pytest.raises(cubecast.BadInput, match="HTTP is served there: name the address after --listen"):
                await cubecast.connect(node.http_address)
            with pytest.raises(cubecast.BadInput, match="HTTP is served there"):
                await cubecast.Node(join=node.http_address).start()

    run(main())


def test_a_browser_at_the_port_of_a_node(caplog: pytest.LogCaptureFixture):
    async def main() -> None:
        async with cubecast.Node() as node:
            host, port = node.address.split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            assert await reader.read() == b""
            writer.close()
        assert "it speaks HTTP, which is spoken at the address after --http only" in caplog.text

    with caplog.at_level("INFO"):
        run(main())
