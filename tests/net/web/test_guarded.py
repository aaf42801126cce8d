"""The command line switches traces with the proofs it was given, and a token never crosses a network in the clear."""

import pytest

from cubecast.addresses import Address
from cubecast.errors import BadInput, CubecastError
from cubecast.net.links.login import NOTHING, Login
from cubecast.net.web.asking import http_address, switch_trace
from support.asking import HTTP
from support.ports import free_addresses
from support.running import run
from support.secured import secured


def test_a_token_is_brought_along(tmp_path):
    async def main():
        async with secured("", tls=False, http=HTTP, traces=tmp_path) as scene:
            where = scene.node.web.address
            with pytest.raises(BadInput, match="refuses: this node asks for a token"):
                await switch_trace(where, "one", 5.0, NOTHING)
            said = await switch_trace(where, "one", 5.0, Login(token=scene.token))
            assert said["on"] and scene.node.tracing()["on"]
            with pytest.raises(BadInput, match=r"a trace is written to .* already"):
                await switch_trace(where, "two", 5.0, Login(token=scene.token))

    run(main())


def test_never_in_the_clear():
    async def main():
        with pytest.raises(BadInput, match="does not cross a network in the clear"):
            await switch_trace(Address("192.0.2.1", 80), "one", 5.0, Login(token="secret"))

    run(main())


def test_nobody_there():
    async def main():
        (nobody,) = free_addresses(1)
        with pytest.raises(CubecastError, match="does not answer"):
            await switch_trace(Address.parse(nobody), "one", 5.0, NOTHING)

    run(main())


def test_where_a_node_serves():
    assert http_address("127.0.0.1:80", "127.0.0.1:7400") == ("127.0.0.1", 80)
    assert http_address("0.0.0.0:80", "10.0.0.1:7400") == ("10.0.0.1", 80)
    with pytest.raises(BadInput, match=r"10\.0\.0\.1:7400 serves no HTTP"):
        http_address(None, "10.0.0.1:7400")
