"""`cubecast config`: is a configuration file right, what does it amount to, what can be set."""

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from cubecast.cli.common import BAD_INPUT, json_option, print_json
from cubecast.cli.node import node_options, setting_options, sources
from cubecast.cli.screen import output
from cubecast.net.members.security import Security
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.resolve import EXAMPLE_HEADING, check_file, example, resolve, shown

CHECK_EXAMPLE = """
\b
Example:
  cubecast config check cubecast.toml
\b
Example, for a node that is started with options besides the file:
  cubecast config check cubecast.toml --data /var/lib/cubecast
"""
SHOW_EXAMPLE = """
\b
Example, with everything that `cubecast node` takes:
  CUBECAST_WINDOW=32 cubecast config show --config cubecast.toml --listen 127.0.0.1:7400
"""
EXAMPLE_EXAMPLE = """
\b
Example:
  cubecast config example > cubecast.toml
"""


@click.group()
def config() -> None:
    """The settings of a node: check a file, show what counts and why, print an example."""


@config.command(epilog=CHECK_EXAMPLE)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@setting_options
@json_option
@click.pass_context
def check(ctx: click.Context, /, file: Path, as_json: bool, **options: Any) -> None:
    """Read a file as a node would, with the environment and the options of `cubecast node`.

    Exit code 0 when it is right, 2 with a line per problem.
    """
    problems = check_file(NodeConfig, sources(file, options), lambda config: Security(config).settled(config))
    if as_json:
        print_json({"file": str(file), "problems": problems})
    else:
        for problem in problems:
            click.echo(f"cubecast: {problem}", err=True)
        if not problems:
            click.echo(f"{file} is right")
    if problems:
        ctx.exit(BAD_INPUT)


@config.command(epilog=SHOW_EXAMPLE)
@node_options
@json_option
def show(config: Path | None, as_json: bool, **options: Any) -> None:
    """Every setting that would count, and where it comes from; secrets are not shown."""
    rows = shown(NodeConfig, resolve(NodeConfig, sources(config, options)))
    if as_json:
        print_json({key: {"value": value, "from": place} for key, value, place in rows})
        return
    table = Table("setting", "value", "comes from")
    for key, value, place in rows:
        table.add_row(key, value or "", place)
    output.print(table)


@config.command("example", epilog=EXAMPLE_EXAMPLE)
def print_example() -> None:
    """A file with every setting at its default, each explained."""
    click.echo(example(NodeConfig, EXAMPLE_HEADING), nl=False)
