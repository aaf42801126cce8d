"""Errors say who is at fault, whether it happened, and what to do; at a node and at a thin client alike."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import cubecast
from cubecast.net.security.certificates import write_secret
from cubecast.net.security.credentials import digest, new_token
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


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("http://127.0.0.1:7400", "is not an address; write HOST:PORT"),
        ("127.0.0.1 :7400", "is not an address; write HOST:PORT"),
        (["127.0.0.1:7400"], "an address is text"),
        ("127.0.0.1:0", "a node has its port once it is started"),
    ],
)
def test_what_is_no_address(address: Any, complaint: str):
    with pytest.raises(cubecast.BadInput, match=complaint):
        cubecast.connect(address)
    if isinstance(address, str):
        with pytest.raises(cubecast.BadInput, match=complaint):
            cubecast.Node(join=address)


def test_a_node_is_started_once():
    async def main() -> None:
        node = cubecast.Node()
        async with node:
            with pytest.raises(cubecast.BadInput, match="started already"):
                await node.start()
            await node.publish("t", "as before", wait="stable")
        with pytest.raises(cubecast.Closed, match="make a new one"):
            await node.start()

    run(main())


def test_a_client_that_was_not_awaited():
    connecting: Any = cubecast.connect("127.0.0.1:7400")
    with pytest.raises(AttributeError, match="no client yet"):
        connecting.publish("t", "x")
    with pytest.raises(AttributeError, match="has no attribute 'publsh'"):
        connecting.publsh("t", "x")
    assert "not connected" in repr(connecting)


def test_a_blocking_client_of_a_node_in_its_own_event_loop():
    async def main() -> None:
        async with cubecast.Node() as node:
            with pytest.raises(cubecast.Unreachable, match="stood still meanwhile"):
                cubecast.sync.connect(node.address, timeout=0.05)

    run(main())


@SIDES
def test_what_looks_like_a_batch_headers_or_a_handler(thin: bool):
    async def main() -> None:
        async with cubecast.Node() as node, cubecast.connect(node.address) as client:
            side: Any = client if thin else node
            for batch in ("text", b"bytes", {"a": 1}, 5):
                with pytest.raises(cubecast.BadInput, match="a batch is several messages"):
                    await side.publish_batch("t", batch)
            for call in (side.publish, side.request):
                with pytest.raises(cubecast.BadInput, match="headers are text"):
                    await call("t", 1, headers=["a"])
            with pytest.raises(cubecast.BadInput, match="by a function"):
                side.serve("t", "answer")

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


@SIDES
def test_a_request_without_servers_fails_at_once(thin: bool):
    async def main() -> None:
        async with (
            cubecast.Node() as here,
            cubecast.Node(join=here.address) as there,
            cubecast.connect(here.address) as client,
        ):
            asker = client if thin else here
            with pytest.raises(cubecast.NoResponder, match="ask: nobody is subscribed, so nobody answers"):
                await asker.request("ask", 1, timeout=600)
            async with there.serve("ask", lambda message: message.json() + 1):
                assert (await asker.request("ask", 1, timeout=60)).data == 2
            with pytest.raises(cubecast.NoResponder):
                await asker.request("ask", 1, timeout=600)
            async with here.serve("the.founder", lambda message: message.json() + 1):
                assert (await there.request("the.founder", 1, timeout=60)).data == 2
            async with there.subscribe(">") as heard:
                question = asyncio.create_task(asker.request("ask.more", 1, timeout=60))
                message = await heard.next(60)
                assert isinstance(message, cubecast.Message)
                heard.close()  # whoever asked is answered all the same
                await message.reply(5)
                assert (await question).data == 5

    run(main())


def test_a_log_is_nobody_who_answers(tmp_path: Path):
    async def main() -> None:
        async with cubecast.Node(data=tmp_path, log=">") as node:
            with pytest.raises(cubecast.NoResponder):
                await node.request("ask", 1, timeout=600)

    run(main())


def test_a_question_that_is_not_permitted_fails_at_once(tmp_path: Path):
    async def main() -> None:
        secret = new_token("ann")
        policy = tmp_path / "policy.toml"
        policy.write_text(
            f'[principals.ann]\ntokens = ["{digest(secret, "cubecast")}"]\n'
            'subscribe = ["_inbox.>"]\npublish = ["_inbox.>"]\n'
        )
        token = tmp_path / "token"
        write_secret(token, secret.encode())
        async with (
            cubecast.Node(policy=policy) as node,
            cubecast.connect(node.address, login=cubecast.Login(token_file=token)) as ann,
        ):
            with pytest.raises(cubecast.NotPermitted, match="ann may not publish on ask"):
                await ann.request("ask", 1, timeout=600)

    run(main())
