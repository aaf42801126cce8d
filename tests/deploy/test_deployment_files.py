"""Container file, compose file and systemd unit: as far as it can be checked without the programs they are for."""

import re
import shutil
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from cubecast.cli import main
from cubecast.errors import BadInput
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.fields import leaves
from cubecast.net.settings.resolve import Resolved, Sources, resolve
from support.sources import ROOT

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "cubecast.service"
KEYS_OF_A_SERVICE = {
    *("build", "cap_drop", "environment", "image", "networks", "ports", "read_only"),
    *("restart", "security_opt", "stop_grace_period", "volumes"),
}
"""Of the compose specification, those that are used; one that is misspelt would be another one."""


def parsed(words: list[str]) -> click.Command:
    """The command these words call, with its options parsed and nothing run."""
    with click.Context(main) as context:
        command = main.get_command(context, words[0])
        assert command is not None, words
        rest = words[1:]
        if isinstance(command, click.Group):
            command = command.get_command(context, rest.pop(0))
            assert command is not None, words
        command.make_context(words[0], rest, parent=context)
    return command


# systemd


def unit() -> ConfigParser:
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    return parser


def test_the_unit_calls_commands_that_exist():
    service = unit()["Service"]
    names = [parsed(service[key].split()[1:]).name for key in ("ExecStartPre", "ExecStart")]
    assert names == ["check", "node"]
    assert service["Type"] == "notify" and service["ExecReload"].endswith("-HUP $MAINPID")
    assert service["RestartPreventExitStatus"] == "2", "bad settings stay bad"


def test_the_unit_reads_and_writes_where_systemd_lets_it():
    """The rest of the file system is read-only, and its user exists only while it runs."""
    service = unit()["Service"]
    words = service["ExecStart"].split()
    assert words[words.index("--data") + 1] == f"/var/lib/{service['StateDirectory']}"
    config = words[words.index("--config") + 1]
    assert config.startswith(f"/etc/{service['ConfigurationDirectory']}/")
    checked = service["ExecStartPre"].split()
    assert checked[3] == config and set(checked[4:]) < set(words), "what is checked is what is used"


def test_the_unit_checks_a_file_as_its_node_reads_it(tmp_path: Path):
    """A log needs a directory, which the unit gives as an option."""
    file = tmp_path / "cubecast.toml"
    file.write_text("log = ['>']\n")
    words = [str(file) if word.endswith(".toml") else word for word in unit()["Service"]["ExecStartPre"].split()[1:]]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stdout) == (0, f"{file} is right\n"), done.stderr
    without = CliRunner().invoke(main, [word for word in words if "/var/lib" not in word and word != "--data"])
    assert without.exit_code == 2 and "a log needs a place" in without.stderr


def test_systemd_likes_the_unit(tmp_path: Path):
    """Where systemd is; the program's place is filled in, because it is not installed there."""
    text = UNIT.read_text().replace("/opt/cubecast/bin/cubecast", sys.executable)
    (tmp_path / UNIT.name).write_text(text)
    program = shutil.which("systemd-analyze")
    if program is not None:
        told = subprocess.run(
            [program, "verify", tmp_path / UNIT.name], capture_output=True, text=True, timeout=120, check=False
        )
        assert not [line for line in told.stderr.splitlines() if UNIT.name in line], told.stderr


# Containers


def instructions() -> list[tuple[str, str]]:
    joined = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def test_the_container_copies_what_is_there_and_runs_as_nobody_special():
    found = instructions()
    for name, rest in found:
        words = rest.split()
        if name == "COPY" and not words[0].startswith("--from"):
            assert all((ROOT / word).exists() for word in words[:-1]), rest
    names = [name for name, _ in found]
    assert names.index("USER") < names.index("ENTRYPOINT")
    by_name = dict(found)
    assert by_name["USER"] == "cubecast" and by_name["STOPSIGNAL"] == "SIGTERM"
    assert (by_name["ENTRYPOINT"], by_name["CMD"]) == ('["cubecast"]', '["node"]')
    parsed(["node"])


def environment_of_the_image() -> dict[str, str]:
    pairs = [word for name, rest in instructions() if name == "ENV" for word in rest.split()]
    return {key: value for key, _, value in (pair.partition("=") for pair in pairs) if key.startswith("CUBECAST_")}


WHAT_THE_IMAGE_ASKS_FOR = {"CUBECAST_ADVERTISE": "node:7400", "CUBECAST_INSECURE": "true"}


def test_the_health_check_asks_where_the_image_answers():
    (check,) = [rest for name, rest in instructions() if name == "HEALTHCHECK"]
    config = resolved(environment_of_the_image() | WHAT_THE_IMAGE_ASKS_FOR).config
    assert f"http://{config.http}/readyz" in check


def test_the_image_listens_where_it_exposes():
    config = resolved(environment_of_the_image() | WHAT_THE_IMAGE_ASKS_FOR).config
    assert str(config.listen) == f"0.0.0.0:{dict(instructions())['EXPOSE']}"
    for missing in WHAT_THE_IMAGE_ASKS_FOR:
        rest = {name: value for name, value in WHAT_THE_IMAGE_ASKS_FOR.items() if name != missing}
        with pytest.raises(BadInput, match=r"advertise|without TLS"):
            resolved(environment_of_the_image() | rest)


def test_the_image_tells_how_to_run_it():
    (line,) = [one for one in (DEPLOY / "Containerfile").read_text().splitlines() if one.startswith("#   podman run")]
    told = dict(pair.split("=") for pair in re.findall(r"-e (\S+)", line))
    config = resolved(environment_of_the_image() | told).config
    assert f"-p {config.advertise}:{config.listen.port}" in line and set(told) == set(WHAT_THE_IMAGE_ASKS_FOR)


def test_a_node_needs_a_small_part_of_the_lock():
    script = ROOT / "scripts" / "node_requirements.py"
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=True)
    named = re.findall(r"(?m)^([\w-]+)==", ended.stdout)
    assert ended.stdout.count("--hash=") >= len(named)
    assert not {"pyspark", "pandas", "matplotlib", "pytest", "numba", "numpy", "pyarrow"} & set(named)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [re.match(r"[\w-]+", one)[0] for one in project["dependencies"]]  # type: ignore[index]
    for name in needed:
        assert name in named
        for one in requires(name) or ():  # what the installed packages themselves say
            bare = re.match(r"[\w.-]+", one)[0].lower().replace("_", "-")  # type: ignore[index]
            if ";" not in one and bare not in needed:
                needed.append(bare)


# Three nodes


def compose() -> dict[str, Any]:
    """As compose reads it: anchors and merges resolved."""
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert isinstance(found, dict)
    return found


def settings_of_the_nodes() -> list[dict[str, str]]:
    """What each service of the compose file finds in its environment."""
    services = compose()["services"]
    assert list(services) == ["node0", "node1", "node2"]
    return [environment_of_the_image() | service["environment"] for service in services.values()]


def resolved(environment: dict[str, str]) -> Resolved[NodeConfig]:
    return resolve(NodeConfig, Sources(environment=environment))


def test_the_compose_file_is_a_cluster_of_three():
    configs = [resolved(environment).config for environment in settings_of_the_nodes()]
    assert [config.node for config in configs] == [0, 1, 2]
    for config in configs:
        assert sorted(config.peers) == [0, 1, 2]
        assert config.advertise == config.peers[config.node]
        assert config.listen.port == config.advertise.port


def test_the_environment_is_text():
    """YAML would make a number of 0 and a truth of true; what a process finds in its environment is text."""
    for environment in settings_of_the_nodes():
        assert [value for value in environment.values() if not isinstance(value, str)] == []
        assert set(environment) <= {leaf.variable for leaf in leaves(NodeConfig).values()}


def test_the_services_fit_the_image():
    """What compose gives is where the container looks: its file, its port, its directory, its networks."""
    whole, image = compose(), dict(instructions())
    data = environment_of_the_image()["CUBECAST_DATA"]
    assert image["VOLUME"] == data
    for (name, service), environment in zip(whole["services"].items(), settings_of_the_nodes(), strict=True):
        assert set(service) <= KEYS_OF_A_SERVICE
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).samefile(
            DEPLOY / "Containerfile"
        )
        (mounted,) = service["volumes"]
        assert mounted == f"{name}:{data}" and name in whole["volumes"], "a volume of its own, where its data goes"
        assert set(service["networks"]) <= set(whole["networks"])
        config = resolved(environment).config
        assert str(config.advertise) == f"{name}:{image['EXPOSE']}", "others reach it by its service's name"
        for published in service.get("ports", []):
            host, _, port = published.split(":")
            assert (host, port) == ("127.0.0.1", str(config.listen.port)), "in the clear on this machine only"


def test_compose_asks_for_being_in_the_clear():
    """Without the line that asks for it, the same settings are refused: they listen beyond the machine."""
    (first, *_) = settings_of_the_nodes()
    assert resolved(first).config.insecure
    del first["CUBECAST_INSECURE"]
    with pytest.raises(BadInput, match="without TLS"):
        resolved(first)


@pytest.mark.parametrize("name", ["Containerfile", "compose.yaml", "cubecast.service"])
def test_tabs_have_no_place_here(name: str):
    assert "\t" not in (DEPLOY / name).read_text()
