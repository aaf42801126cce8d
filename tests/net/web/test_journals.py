"""A node's journal over HTTP: for administrators, by the names it lists, and nothing else of its disk."""

import json

import pytest

from cubecast.errors import BadInput
from cubecast.net.links.login import NOTHING, Login
from cubecast.net.web.access import Need, need_of
from cubecast.net.web.asking import journal_behind, journals_of, leave_verdict
from support.asking import HTTP, ask
from support.cluster import cluster
from support.running import run
from support.secured import secured


def test_a_journal_is_read_in_pieces_and_a_verdict_is_left(tmp_path):
    async def main():
        async with cluster(1, http=HTTP, journal=tmp_path / "live") as (node,):
            where = node._live.web.address
            await node.publish("t", "x")
            said = await journals_of(where, 5.0)
            ((name, size),) = said["journals"].items()
            assert said["node"] == 0
            whole = await journal_behind(where, name, 0, 5.0)
            assert whole[:size] == (tmp_path / "live" / name).read_bytes()[:size]
            assert await journal_behind(where, name, 10, 5.0) == whole[10:]
            assert await journal_behind(where, name, 10**9, 5.0) == b""
            await leave_verdict(where, b'{"verdict": "VALID"}', 5.0)
            assert json.loads((tmp_path / "live" / "verdict.json").read_text()) == {"verdict": "VALID"}

    run(main())


def test_nothing_else_is_read(tmp_path):
    (tmp_path / "node-00000-00000-secret.txt").write_text("secret")
    (tmp_path / "secret.jsonl").write_text("secret")

    async def main():
        async with cluster(1, http=HTTP, journal=tmp_path / "live") as (node,):
            for name in ("../secret.jsonl", "node-00000-00000-..%2Fsecret.jsonl", "verdict.json", ""):
                assert (await ask(node, f"/trace/journal?name={name}"))[0] == 400
            for begin in ("-1", "x", "9" * 19):
                assert (await ask(node, f"/trace/journal?name=node-00000-00000-a.jsonl&from={begin}"))[0] == 400
            assert (await ask(node, "/trace/journal?name=node-00000-00000-a.jsonl"))[0] == 404

    run(main())


def test_a_node_that_records_nothing_says_so():
    async def main():
        async with cluster(1, http=HTTP) as (node,):
            with pytest.raises(BadInput, match="writes no journal; start it with --trace"):
                await journals_of(node._live.web.address, 5.0)

    run(main())


def test_whoever_may_only_look_does_not_read_it(tmp_path):
    async def main():
        async with secured("", tls=False, http=HTTP, journal=tmp_path) as scene:
            where = scene.node.web.address
            with pytest.raises(BadInput, match="refuses: this node asks for a token"):
                await journals_of(where, 5.0, NOTHING)
            assert (await journals_of(where, 5.0, Login(token=scene.token)))["journals"]

    run(main())


@pytest.mark.parametrize("path", ["/trace/journals", "/trace/journal"])
def test_it_needs_an_administrator(path):
    class Request:
        method = "GET"

    Request.path = path
    assert need_of(Request) is Need.ADMIN
