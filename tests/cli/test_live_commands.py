"""`node`, `pub`, `sub`, `status`, `held`: what people type on a running cluster, and what goes wrong."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from cubecast.api.connect import connect
from support.commands import DEADLINE, RunningNode, complaint, cubecast, running, running_node
from support.running import run


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[RunningNode, RunningNode]]:
    with running_node() as first, running_node("--join", first.address) as second:
        yield first, second


def test_lines_in_lines_out(pair: tuple[RunningNode, RunningNode]):
    first, second = pair
    with running("sub", "numbers", "--node", first.address, "--count", 4, errors_too=True) as subscriber:
        assert subscriber.line() == "subscribed to numbers"
        assert cubecast("pub", "numbers", "--node", second.address, text="one\ntwo\nthree\nfour\n").returncode == 0
        assert [subscriber.line() for _ in range(4)] == ["one", "two", "three", "four"]
        assert subscriber.process.wait(DEADLINE) == 0


def test_wildcards_and_json(pair: tuple[RunningNode, RunningNode]):
    first, second = pair
    with running("sub", "orders.>", "--node", first.address, "--json", errors_too=True) as subscriber:
        assert subscriber.line() == "subscribed to orders.>"
        published = cubecast("pub", "orders.eu", "tea", "--node", second.address, "--count", 2, "--json")
        assert json.loads(published.stdout) == {"topic": "orders.eu", "published": 2}
        heard = [json.loads(subscriber.line()) for _ in range(2)]
        source = {"topic": "orders.eu", "source": second.node, "incarnation": 0}
        assert heard == [source | {"counter": number, "data": "tea"} for number in (1, 2)]
        assert subscriber.stop() == 0


@pytest.mark.parametrize("how", [(), ("--json",)], ids=["text", "json"])
def test_a_garbled_message_does_not_end_the_listening(pair: tuple[RunningNode, RunningNode], how: tuple[str, ...]):
    """Anybody who may publish can send one, past what our clients put around what they publish."""

    async def garble(address: str) -> None:
        client = await connect(address)
        client._port.publish("garbled", [b"\xc1\x7f nonsense"])
        await client.publish("garbled", "after it", wait="stable")
        await client.close()

    first, second = pair
    with running("sub", "garbled", "--node", first.address, "--count", 2, *how, errors_too=True) as subscriber:
        assert subscriber.line() == "subscribed to garbled"
        run(garble(second.address))
        lines = [subscriber.line(), subscriber.line()]
        assert "kind" in lines[0] and "after it" in lines[1]
        assert not how or json.loads(lines[0])["base64"] == "wX8gbm9uc2Vuc2U="
        assert subscriber.process.wait(DEADLINE) == 0


def test_what_was_said_before_can_be_read_from_the_log(tmp_path: Path):
    with running_node("--data", tmp_path, "--log", ">") as keeper:
        cubecast("pub", "story", "--node", keeper.address, text="once\nupon\na\ntime\n")
        words = ("sub", "story", "--node", keeper.address)
        ended = cubecast(*words, "--since", "beginning", "--count", 4)
        assert ended.stdout.split() == ["once", "upon", "a", "time"]
        third = json.loads(cubecast(*words, "--since", 3, "--count", 1, "--json").stdout)
        assert (third["data"], third["offset"]) == ("a", 3) and third["time"] > 0


def test_what_is_published_where_nobody_learns_who_has_it():
    with running_node("--protocol", "epto") as node:
        ended = cubecast("pub", "t", "hello", "--node", node.address)
        assert (ended.returncode, ended.stdout) == (0, "")
        told, published = ended.stderr.splitlines()
        assert told.startswith("t: handed over; epto never learns") and published == "1 published"


def test_a_rate_is_kept(pair: tuple[RunningNode, RunningNode]):
    ended = cubecast("pub", "slow", "tick", "--count", 3, "--rate", 20, "--node", pair[0].address, "--json")
    assert json.loads(ended.stdout)["published"] == 3


def test_status_and_held(pair: tuple[RunningNode, RunningNode]):
    first, second = pair
    with running("sub", "weather", "--node", first.address, errors_too=True) as subscriber:
        subscriber.line()
        cubecast("pub", "weather", "rain", "--node", second.address)
        assert subscriber.line() == "rain"
        status = json.loads(cubecast("status", "--node", first.address, "--json").stdout)
    assert [(one["node"], one["alive"]) for one in status["members"]] == [(0, True), (1, True)]
    weather = status["topics"]["weather"]
    assert weather["members"] == [first.node]
    assert weather["publishers"] == [{"node": second.node, "incarnation": 0, "delivered": 1, "lag": 0}]
    held = json.loads(cubecast("held", "--node", first.address, "--json").stdout)
    assert (held["nodes"][0]["node"], held["nodes"][0]["held"], held["silent"]) == (first.node, [], {})
    assert "weather" in cubecast("status", "--node", first.address).stdout
    assert "node 0 holds 0 publications" in cubecast("held", "--node", first.address).stdout


def test_a_narrow_terminal_shows_whole_addresses(pair: tuple[RunningNode, RunningNode], monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    nodes = [word for one in pair for word in ("--node", one.address)]
    seen = cubecast("status", "--watch", "--interval", 0.1, "--times", 2, *nodes).stdout
    assert all(f"{one.node} {one.address}" in seen for one in pair) and "…" not in seen
    assert seen.endswith("\n")


def test_watching_several_nodes(pair: tuple[RunningNode, RunningNode]):
    nodes = [word for one in pair for word in ("--node", one.address)]
    seen = cubecast("status", "--watch", "--interval", 0.1, "--times", 2, *nodes, "--node", "127.0.0.1:1")
    assert seen.returncode == 0, seen.stderr
    assert "holding" in seen.stdout and "2/2" in seen.stdout
    assert "127.0.0.1:1 does not answer" in seen.stdout


def test_a_trace_is_switched_on_and_off_and_collected(tmp_path):
    with running_node("--http", "127.0.0.1:0", "--data", tmp_path, "--dimension", 3) as node:
        where = ("--node", node.address)
        assert "records to" in cubecast("trace", "on", *where, "--run", "one").stdout
        told = json.loads(cubecast("trace", "off", *where, "--json").stdout)["nodes"]
        assert [(one["node"], one["on"]) for one in told] == [(0, False)]
    out = cubecast("trace", "collect", tmp_path / "traces" / "one", "--out", tmp_path / "trace")
    assert out.returncode == 0 and "This trace is partial" in out.stdout
    judged = cubecast("check", tmp_path / "trace")
    assert (
        judged.returncode == 0 and "only what was published while its publisher's journal was written" in judged.stdout
    )


def test_a_trace_needs_http(pair: tuple[RunningNode, RunningNode]):
    assert "serves no HTTP; start it with --http" in complaint("trace", "on", "--node", pair[0].address)


def test_a_node_leaves_in_good_order(pair: tuple[RunningNode, RunningNode]):
    first, _ = pair
    with running_node("--join", first.address, "--id", 7) as third:
        assert third.node == 7
        assert third.stop() == 0
    deadline, lives = monotonic() + DEADLINE, {7: True}
    while lives[7] and monotonic() < deadline:
        members = json.loads(cubecast("status", "--node", first.address, "--json").stdout)["members"]
        lives = {one["node"]: one["alive"] for one in members}
    assert lives == {0: True, 1: True, 7: False}


BAD_CLIENTS = {
    "unreachable": (("pub", "a", "x", "--node", "127.0.0.1:1", "--timeout", "0.2"), "127.0.0.1:1: Connection refused"),
    "another cluster": (("status", "--cluster", "other"), "does not belong to cluster 'other'"),
    "no address": (("held", "--node", "here"), "'here' is not an address; write HOST:PORT"),
    "topic with a hole": (("pub", "a..b", "x"), "topic 'a..b' has an empty word"),
    "publishing to a wildcard": (("pub", "a.*", "x"), "nothing is published to them"),
    "pattern": (("sub", "a.>.b"), "'>' stands for all the rest"),
    "count": (("sub", "a", "--count", "0"), "Invalid value for '--count'"),
    "no place in a log": (("sub", "a", "--since", "lunch"), "'lunch' is no offset, no date and time"),
    "no log": (("sub", "a", "--since", "beginning"), "this node keeps no log"),
}


@pytest.mark.parametrize("words, reason", BAD_CLIENTS.values(), ids=BAD_CLIENTS)
def test_clients_complain_in_one_line(pair: tuple[RunningNode, RunningNode], words: tuple[str, ...], reason: str):
    where = () if "--node" in words else ("--node", pair[0].address)
    assert reason in complaint(*words, *where)


def test_a_message_that_is_too_large_is_not_published(pair: tuple[RunningNode, RunningNode]):
    line = complaint("pub", "large", "--node", pair[0].address, text="x" * 1_100_000 + "\n")
    assert re.match(r"a message of 11000\d\d bytes; .* Nothing was published", line)


def test_nodes_complain_in_one_line(pair: tuple[RunningNode, RunningNode]):
    first, _ = pair
    assert f"address {first.address} is in use" in complaint("node", "--listen", first.address)
    assert "id 1 is in use" in complaint("node", "--join", first.address, "--id", 1)
    assert "id 64 does not exist" in complaint("node", "--join", first.address, "--id", 64)
    assert "does not belong to cluster 'elsewhere'" in complaint(
        "node", "--join", first.address, "--cluster", "elsewhere"
    )
    assert "no member answers at 127.0.0.1:1" in complaint("node", "--join", "127.0.0.1:1")
    assert "cannot read" in complaint("node", "--config", "missing.toml")


@pytest.mark.parametrize(("typed", "meant"), [("nod", "node"), ("subscribe", "sub"), ("help", "--help")])
def test_a_command_that_is_not_there(typed: str, meant: str):
    assert f"there is no command {typed!r}; did you mean {meant}?" in complaint(typed)


def test_a_group_of_commands_without_one_shows_its_help():
    done = cubecast("log")
    assert done.returncode == 2 and done.stderr.startswith("Usage: cubecast log") and "\n  ls " in done.stderr


def test_nobody_to_ask_what_it_holds():
    assert "is a node running there?" in complaint("held", "--node", "127.0.0.1:1", "--timeout", 0.5)
