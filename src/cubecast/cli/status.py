"""`cubecast status` and `cubecast held`: what a running node says about itself."""

from typing import Any

import click

from cubecast.cli.client_options import client_options, connecting
from cubecast.cli.common import json_option, output, print_json
from cubecast.net.loop import run
from cubecast.report.live_tables import held_table, status_tables

STATUS_EXAMPLE = """
\b
Example:
  cubecast status --node 127.0.0.1:7400
"""
HELD_EXAMPLE = """
\b
Example:
  cubecast held --node 127.0.0.1:7400 --json
"""


@click.command(epilog=STATUS_EXAMPLE)
@client_options
@json_option
def status(as_json: bool, **where: Any) -> None:
    """Members, topics, queues and lag, as one node sees them."""
    said = run(_ask(where))
    if as_json:
        print_json(said)
        return
    for table in status_tables(said):
        output.print(table)


@click.command(epilog=HELD_EXAMPLE)
@client_options
@json_option
def held(as_json: bool, **where: Any) -> None:
    """Which messages a node holds, waiting for which, since when."""
    said = run(_ask(where))
    if as_json:
        print_json({name: said[name] for name in ("node", "incarnation", "held", "held_back", "waiting")})
    else:
        output.print(held_table(said))


async def _ask(where: dict[str, Any]) -> dict[str, Any]:
    async with connecting(**where) as client:
        return await client.status()
