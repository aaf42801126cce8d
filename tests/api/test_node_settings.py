"""`Node(...)` takes every setting as the documents write it: text, units, dictionaries, Python's own types."""

from pathlib import Path
from typing import Any, get_type_hints

import pytest
from mypy import api as mypy

from cubecast import BadInput, Node, TlsSettings, connect
from cubecast.addresses import Address
from cubecast.api.node import NodeSettings
from cubecast.net.settings.config import NodeConfig, Retention
from cubecast.net.settings.fields import leaves
from cubecast.net.settings.security import Limits
from support.running import run
from support.sources import ROOT

PLACE = Address("127.0.0.1", 7400)
TAKEN: dict[str, list[tuple[Any, Any]]] = {
    "listen": [("127.0.0.1:7400", PLACE), (PLACE, PLACE), (None, Address("127.0.0.1", 0))],
    "join": [
        ("127.0.0.1:7400", (PLACE,)),
        (["127.0.0.1:7400"], (PLACE,)),
        ((PLACE,), (PLACE,)),
        ("127.0.0.1:7400, 127.0.0.1:7400", (PLACE, PLACE)),
    ],
    "http": [("127.0.0.1:7400", PLACE)],
    "max_payload": [("64 KiB", 65_536), (1000, 1000)],
    "patience": [("2 s", 2.0), (2, 2.0)],
    "data": [("here", Path("here")), (Path("here"), Path("here"))],
    "journal": [("~/trace", Path.home() / "trace")],
    "limits": [
        ({"clients_per_address": 5}, Limits(clients_per_address=5)),
        ({"greeting_time": "200 ms"}, Limits(greeting_time=0.2)),
        (Limits(unauthenticated=7), Limits(unauthenticated=7)),
    ],
    "ws_origins": [("https://a.example", ("https://a.example",))],
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a misspelt name": ({"lisen": "127.0.0.1:0"}, "Node: unknown setting lisen; did you mean listen?"),
    "what an option is called": ({"id": 3}, "Node: unknown setting id; did you mean node?"),
    "a misspelt name in a table": (
        {"limits": {"unauthenticate": 1}},
        "limits.unauthenticate; did you mean limits.unauthenticated?",
    ),
    "a number in words": ({"window": "many"}, "Node: window must be a whole number from 1 to 4096, not 'many'"),
    "too much": ({"max_payload": "2 MiB"}, "max_payload must be a number of bytes from 1 to 1048576"),
    "no address": ({"join": "localhost"}, "Node: join 'localhost' is not an address; write HOST:PORT"),
    "no truth": ({"pacing": "yes"}, "Node: pacing must be true or false, not 'yes'"),
    "no table": ({"tls": "cert.pem"}, "Node: tls must be a table of cert, key, ca, revoked, not 'cert.pem'"),
    "half a table": ({"tls": {"cert": "a"}}, "needs a certificate authority"),
    "bytes for a list": ({"log": b">"}, "log must be a list"),
    "its own log lines": ({"logging": {"level": "debug"}}, "an application arranges its own"),
    "an address twice": (
        {"node": 0, "peers": {0: "a:1", 1: "b:1", 2: "a:1"}},
        "`peers` gives a:1 to nodes 0 and 2; each needs its own",
    ),
    "several": ({"window": 0, "lisen": 1}, "unknown setting lisen"),
}


@pytest.mark.parametrize(("key", "given", "meant"), [(key, *one) for key, many in TAKEN.items() for one in many])
def test_taken(key: str, given: Any, meant: Any):
    assert getattr(Node(**{key: given})._live.config, key) == meant


def test_tables_by_id_and_by_pattern(tmp_path: Path):
    node = Node(
        node=1,
        peers={0: "127.0.0.1:7400", 1: Address("127.0.0.1", 7401)},
        data=str(tmp_path),
        log=">",
        retention={"orders.>": {"max_age": "7 d"}, "all.>": Retention(max_messages=3)},
    )
    config = node._live.config
    assert config.peers == {0: PLACE, 1: Address("127.0.0.1", 7401)} and config.listen == config.peers[1]
    assert config.retention == {"orders.>": Retention(max_age=604_800.0), "all.>": Retention(max_messages=3)}
    assert config.log == (">",)


def test_tls_as_a_table_and_as_its_class(tmp_path: Path):
    files = {"cert": tmp_path / "a.pem", "key": tmp_path / "a.key", "ca": tmp_path / "ca.pem"}
    for given in (files, {name: str(path) for name, path in files.items()}, TlsSettings(**files)):
        with pytest.raises(BadInput, match=r"a\.pem|ca\.pem"):  # understood; the files are not there
            Node(tls=given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "complaint"), REFUSED.values(), ids=REFUSED)
def test_refused(given: dict[str, Any], complaint: str):
    with pytest.raises(BadInput) as caught:
        Node(**given)
    assert complaint in str(caught.value) and "\n" not in str(caught.value)


def test_nothing_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUBECAST_WINDOW", "7")
    assert Node()._live.config.window == NodeConfig().window


def test_the_types_know_every_setting():
    fields = {key.partition(".")[0] for key in leaves(NodeConfig)}
    assert set(get_type_hints(NodeSettings)) == fields - {"logging"}


def test_nodes_clients_and_subscriptions_say_what_they_are():
    async def scenario() -> None:
        node = Node(http="127.0.0.1:0")
        assert repr(node) == "<Node of cluster 'cubecast', not started>" and node.http_address is None
        async with node:
            assert repr(node) == (f"<Node 0 of cluster 'cubecast' at {node.address}, http at {node.http_address}>")
            async with connect(node.address) as client:
                assert repr(client) == f"<Client of node 0 at {node.address}>"
                async with client.subscribe("chat.*") as heard:
                    assert repr(heard) == "<Subscription to 'chat.*', 0 bytes to read>"
                assert repr(heard) == "<Subscription to 'chat.*', ended>"
                called = client.subscribe("chat.*", on_batch=print)
                assert repr(called) == "<Subscription to 'chat.*', calls a function>"
            assert repr(client).endswith(", closed>")
        assert repr(node) == "<Node of cluster 'cubecast', closed>"

    run(scenario())


@pytest.mark.slow
def test_a_type_checker_finds_what_is_wrong(tmp_path: Path):
    """Slow: mypy reads the package."""
    program = tmp_path / "program.py"
    program.write_text(
        "import cubecast\n"
        "cubecast.Node(join='127.0.0.1:7400', data='here', max_payload='64 KiB', tls={'ca': 'ca.pem'})\n"
        "cubecast.Node(lisen='127.0.0.1:7400')\n"
        "cubecast.Node(window='many')\n"
    )
    out, _, code = mypy.run([str(program), "--config-file", str(ROOT / "pyproject.toml"), "--no-incremental"])
    lines = [line for line in out.splitlines() if "program.py" in line]
    assert code == 1 and [line.split(":")[1] for line in lines if ": error" in line] == ["3", "4"], out
