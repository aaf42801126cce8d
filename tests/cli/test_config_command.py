"""`cubecast config` and the ways to configure a node, as people and service managers use them."""

import json
import os
import signal
import socket
from pathlib import Path

from cubecast.cli.node import KEYS, node
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.resolve import Sources, resolve
from support.commands import complaint, cubecast, running, running_node


def test_check(tmp_path: Path):
    file = tmp_path / "node.toml"
    file.write_text("window = 4\n")
    right = cubecast("config", "check", file)
    assert (right.returncode, right.stdout) == (0, f"{file} is right\n")
    file.write_text("windo = 4\n")
    assert complaint("config", "check", file) == f"{file}: unknown key windo; did you mean window?"
    wrong = cubecast("config", "check", file, "--json")
    assert wrong.returncode == 2 and len(json.loads(wrong.stdout)["problems"]) == 1
    assert "cannot read" in complaint("config", "check", tmp_path / "missing.toml")


def test_check_looks_into_the_files_that_are_named(tmp_path: Path):
    file = tmp_path / "node.toml"
    file.write_text("policy = 'policy.toml'\n")
    policy = tmp_path / "policy.toml"
    assert "policy names" in complaint("config", "check", file)
    policy.write_text("nonsense = 1\n")
    assert str(policy) in complaint("config", "check", file)
    certs = tmp_path / "certs"
    assert cubecast("certs", "init", certs).returncode == 0
    assert cubecast("certs", "issue", certs, "seven", "--node", 7).returncode == 0
    tls = "tls = { ca = 'certs/ca.pem', cert = 'certs/seven.pem', key = 'certs/%s.key' }\n"
    file.write_text(tls % "ca")
    assert "certs/ca.key" in complaint("config", "check", file)
    file.write_text("node = 3\n" + tls % "seven")
    assert "does not let this node be node 3" in complaint("config", "check", file)
    file.write_text(tls % "seven")
    assert cubecast("config", "check", file).returncode == 0


def test_show_says_where_everything_comes_from(tmp_path: Path, monkeypatch):
    file = tmp_path / "node.toml"
    file.write_text("window = 4\neager = 2\n")
    monkeypatch.setenv("CUBECAST_EAGER", "3")
    monkeypatch.setenv("CUBECAST_CONFIG", str(file))
    said = json.loads(cubecast("config", "show", "--set", "retry=1", "--json").stdout)
    assert said["window"] == {"value": "4", "from": str(file)}
    assert said["eager"] == {"value": "3", "from": "environment variable CUBECAST_EAGER"}
    assert said["retry"] == {"value": "1.0", "from": "--set retry"}
    assert said["patience"] == {"value": "3.0", "from": "default"}
    assert "environment" in cubecast("config", "show").stdout


def test_the_example_is_the_defaults(tmp_path: Path):
    file = tmp_path / "node.toml"
    file.write_text(cubecast("config", "example").stdout)
    assert resolve(NodeConfig, Sources(file)).config == NodeConfig()


def test_a_node_reads_its_settings_again(tmp_path: Path):
    file = tmp_path / "node.toml"
    file.write_text("dimension = 2\nlogging.level = 'info'\n")
    with running("node", "--config", file, errors_too=True) as node:
        said = node.line()
        while "listens on" not in said:
            said = node.line()
        for text, answer in (
            ("dimension = 3\nmax_clients = 5\nlogging.level = 'info'\n", "only a restart takes over dimension"),
            ("dimension = 2\nmax_clients = 'many'\n", "nothing changed: " + str(file)),
        ):
            file.write_text(text)
            node.process.send_signal(signal.SIGHUP)
            while answer not in said:
                said = node.line()
        assert "max_clients must be a whole number" in said
        assert node.stop() == 0


def test_a_running_node_takes_over_a_new_policy(tmp_path: Path):
    """Process, file, signal, TLS, token: all of it together."""
    certs, policy = tmp_path / "certs", tmp_path / "policy.toml"
    cubecast("certs", "init", certs)
    cubecast("certs", "issue", certs, "node", "--node", "any")
    known = cubecast("token", "new", "ann", "--out", tmp_path / "ann.token").stdout
    policy.write_text(known)
    (tmp_path / "node.toml").write_text(
        "policy = 'policy.toml'\ndimension = 1\nlogging.level = 'info'\n"
        "tls = { ca = 'certs/ca.pem', cert = 'certs/node.pem', key = 'certs/node.key' }\n"
    )
    shown = ("--tls-ca", certs / "ca.pem", "--token-file", tmp_path / "ann.token")
    with running("node", "--config", tmp_path / "node.toml", errors_too=True) as node:
        said = node.line()
        while "listens on" not in said:
            said = node.line()
        address = said.split()[-1]
        refused = cubecast("pub", "news", "x", "--node", address, *shown)
        assert refused.returncode == 2 and "ann may not publish on news" in refused.stderr
        policy.write_text(known + "publish = ['news']\n")
        cubecast("certs", "issue", certs, "node", "--node", "any")  # renewed at the same time
        node.process.send_signal(signal.SIGHUP)
        while "the settings were reloaded" not in said:
            said = node.line()
        assert cubecast("pub", "news", "x", "--node", address, *shown).returncode == 0
        policy.write_text("nonsense = 1\n")
        node.process.send_signal(signal.SIGHUP)
        while "nothing changed" not in said:
            said = node.line()
        assert str(policy) in said
        assert cubecast("pub", "news", "x", "--node", address, *shown).returncode == 0
        assert node.stop() == 0


def test_the_service_manager_is_told(tmp_path: Path, monkeypatch):
    # A name without a file, because the path of a temporary directory may be too long for a socket.
    name = f"cubecast-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name)
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name)
        with running_node("--dimension", 1) as node:
            assert manager.recv(1000).startswith(b"READY=1\nSTATUS=node 0")
            node.process.send_signal(signal.SIGHUP)
            assert manager.recv(1000).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert manager.recv(1000) == b"READY=1"
            assert node.stop() == 0
            assert manager.recv(1000) == b"STOPPING=1"


def test_every_option_is_a_setting():
    """One that is not among them would be taken and forgotten."""
    options = {option.name.replace("_", "-") for option in node.params if option.name is not None}
    assert options - {"settings", "config", "as-json"} == set(KEYS)


def test_options_are_settings(tmp_path: Path):
    assert complaint("node", "--id", "x").startswith("--id: node must be a whole number from 0")
    assert complaint("node", "--ws-origin", "http://[::1").startswith("'http://[::1' is no origin")
    assert complaint("node", "--set", "window").startswith("--set window: write KEY=VALUE")
    assert complaint("node", "--set", "windo=1") == "--set windo: unknown key windo; did you mean window?"
