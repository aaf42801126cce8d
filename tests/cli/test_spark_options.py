"""`--master` and `--conf` reach the session from every command that starts one."""

import click
import pytest

from cubecast.cli import main

COMMANDS = (
    "demo",
    "verify",
    "metrics",
    "sweep",
    "report",
    "swarm",
    "workload universe",
    "workload synthetic",
    "workload publications",
)


@pytest.mark.parametrize("path", COMMANDS)
def test_they_are_offered(path):
    command = main
    for name in path.split():
        command = command.get_command(click.Context(command), name)
    assert {"master", "conf"} <= {parameter.name for parameter in command.params}
