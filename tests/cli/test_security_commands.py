"""Security from the command line: what people type, and that secrets stay where they belong."""

import json
import signal
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from cubecast.cli import main
from support import commands
from support.commands import running, running_node


def cubecast(*words):
    """In this process, which is faster than in one of its own."""
    return CliRunner().invoke(main, list(map(str, words)), prog_name="cubecast")


def complaint(*words):
    ended = cubecast(*words)
    assert ended.exit_code == 2 and not ended.stdout, ended
    (line,) = ended.stderr.splitlines()
    return line.removeprefix("cubecast: ")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An authority, certificates for any node and for node 3, a client's, a token and its policy."""
    directory = tmp_path_factory.mktemp("security")
    certs = directory / "certs"
    for words in (("init",), ("issue", "node", "--node", "any"), ("issue", "three", "--node", "3")):
        assert cubecast("certs", words[0], certs, *words[1:]).exit_code == 0
    assert cubecast("certs", "issue", certs, "alice", "--client").exit_code == 0
    printed = cubecast("token", "new", "bob", "--out", directory / "bob.token").stdout
    grants = 'publish = ["b.>"]\nsubscribe = ["b.>"]\nadmin = [">"]\n'
    (directory / "policy.toml").write_text(printed + grants)
    return directory


def _tls(directory, name="node"):
    certs = directory / "certs"
    return ("--tls-cert", certs / f"{name}.pem", "--tls-key", certs / f"{name}.key", "--tls-ca", certs / "ca.pem")


def test_a_secured_node_from_certificates_to_messages(made):
    """And again after SIGHUP, and its secret is neither in what the node says nor in what it is called with."""
    secret = (made / "bob.token").read_text().strip()
    assert secret.rpartition(".")[2] not in (made / "policy.toml").read_text()
    words = ("--policy", made / "policy.toml", "--http", "127.0.0.1:0", "--data", made, "--log-level", "debug")
    with running("node", "--json", *_tls(made), *words, errors_too=True) as node:
        said = [node.line()]
        while not said[-1].startswith("{"):
            said.append(node.line())
        where = ("--node", json.loads(said[-1])["address"], "--tls-ca", made / "certs" / "ca.pem")
        known = ("--token-file", made / "bob.token")
        assert cubecast("pub", "b.x", "hello", *where, *known).exit_code == 0
        assert "asks for a token" in complaint("pub", "b.x", "hello", *where)
        assert "bob may not publish on c.x" in complaint("pub", "c.x", "hello", *where, *known)
        assert "speaks TLS only" in complaint("pub", "b.x", "hello", *where[:2])
        assert cubecast("certs", "issue", made / "certs", "node", "--node", "any").exit_code == 0
        node.process.send_signal(signal.SIGHUP)
        status = cubecast("status", "--json", *where, *known)
        assert json.loads(status.stdout)["clients"] == 1
        said.append(cubecast("trace", "on", *where, *known).output)
        assert "records to" in said[-1]
        called = Path(f"/proc/{node.process.pid}/cmdline")
        told = [*said, status.output, called.read_text() if called.exists() else ""]
        assert node.stop() == 0
        told.append(node.process.stdout.read())
        assert "bob" in told[-1] and "were reloaded" in told[-1]
        assert not [text for text in told if secret in text or secret.rpartition(".")[2] in text]


def test_who_may_not_publish_reads_one_line_and_goes_on_with_nothing(made):
    """In a process of its own: the log of one is written where people read, and says the same."""
    where = ("--token-file", made / "bob.token", "--rate", 1000)
    with running_node("--policy", made / "policy.toml") as node:
        for words in (("hello",), ("hello", "--count", 1_000_000)):
            said = commands.complaint("pub", "c.x", *words, *where, "--node", node.address)
            assert "bob may not publish on c.x" in said


def test_keys_and_tokens_are_for_their_owner_only(made):
    for path in [*(made / "certs").glob("*.key"), made / "bob.token"]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


REFUSED = {
    "beyond this machine in the clear": (("node", "--listen", "192.0.2.1:7400"), "--insecure if that is what you want"),
    "everywhere in the clear": (
        ("node", "--listen", "0.0.0.0:0", "--advertise", "127.0.0.1:7400"),
        "without TLS would let everybody",
    ),
    "pages beyond this machine in the clear": (("node", "--http", "192.0.2.1:80"), "listening on 192.0.2.1:80 without"),
    "a certificate without a key": (("node", "--tls-cert", "x", "--tls-ca", "y"), "give both"),
    "a certificate without an authority": (("node", "--tls-cert", "x", "--tls-key", "y"), "--tls-ca"),
    "files that are not there": (("node", "--tls-cert", "x", "--tls-key", "y", "--tls-ca", "z"), "cannot read x"),
    "a policy that is not there": (("node", "--policy", "nowhere.toml"), "cannot read nowhere.toml"),
    "a token on the command line": (("pub", "t", "x", "--token", "secret"), "No such option"),
    "a key without a name": (("pub", "t", "x", "--key-file", "x"), "a key proves a name"),
    "an authority that is none": (("certs", "issue", "nowhere", "a", "--client"), "holds no authority"),
    "a name that is none": (("token", "new", "a b", "--out", "x"), "is no name for a principal"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_one_line_and_exit_code_2(case):
    words, reason = REFUSED[case]
    assert reason in complaint(*words)


def test_authorities_and_certificates_that_would_be_wrong_are_refused(made):
    certs = made / "certs"
    assert "has an authority already" in complaint("certs", "init", certs)
    assert "for a node, for a client, or for both" in complaint("certs", "issue", certs, "x")
    assert "one of the authority's own files" in complaint("certs", "issue", certs, "ca", "--client")
    assert "--node is an id or 'any'" in complaint("certs", "issue", certs, "x", "--node", "first")
    assert "does not let this node be node 5" in complaint("node", "--id", 5, *_tls(made, "three"))
    assert "holds no certificate 'nobody'" in complaint("certs", "revoke", certs, "nobody")
    for days in ("-1", "0", "1e12", "nan"):
        assert "valid for up to 36500 days" in complaint("certs", "issue", certs, "x", "--client", "--days", days)


def test_files_that_cannot_be_written_or_are_something_else(made, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    below = tmp_path / "file" / "below"
    assert f"cannot make {below}" in complaint("certs", "init", below)
    assert f"cannot write {below}" in complaint("token", "new", "a", "--out", below)
    assert f"cannot write {below}" in complaint("token", "key", "a", "--out", below)
    assert "file cannot be this node's data directory: " in complaint("node", "--data", tmp_path / "file")
    assert "inputs cannot be recorded in" in complaint("node", "--set", f"inputs={below}")
    (tmp_path / "data" / "incarnation").mkdir(parents=True)
    assert "incarnation: Is a directory" in complaint("node", "--data", tmp_path / "data")
    cubecast("certs", "init", tmp_path / "certs")
    (tmp_path / "certs" / "revoked.pem").write_text("nonsense")
    assert "is no list of revoked certificates" in complaint("certs", "revoke", tmp_path / "certs")


def test_the_environment_may_hold_the_token(made, monkeypatch):
    with running_node("--policy", made / "policy.toml") as node:
        monkeypatch.setenv("CUBECAST_TOKEN", (made / "bob.token").read_text())
        assert cubecast("pub", "b.x", "hello", "--node", node.address).exit_code == 0
        monkeypatch.setenv("CUBECAST_TOKEN", "bob.wrong")
        assert "not valid here" in complaint("pub", "b.x", "hello", "--node", node.address)
