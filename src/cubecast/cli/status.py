"""`cubecast status` and `cubecast held`: what running nodes say about themselves."""

from typing import Any

import click

from cubecast.addresses import Address
from cubecast.api.connect import Connecting
from cubecast.cli.client_options import client_options, connecting
from cubecast.cli.common import json_option, print_json
from cubecast.cli.screen import output
from cubecast.errors import BadInput
from cubecast.net.links.loop import run
from cubecast.report.live_status import held_across, print_held, status_tables, watch

STATUS_EXAMPLE = """
\b
Examples:
  cubecast status --node 127.0.0.1:7400
  cubecast status --watch --node 127.0.0.1:7400 --node 127.0.0.1:7401
"""
HELD_EXAMPLE = """
\b
Examples:
  cubecast held --node 127.0.0.1:7400
  cubecast held --node 127.0.0.1:7400 --node 127.0.0.1:7401 --json
"""


@click.command(epilog=STATUS_EXAMPLE)
@client_options
@click.option("--watch", "watching", is_flag=True, help="Draw it anew every second, for each --node.")
@click.option(
    "--interval", type=click.FloatRange(0.1), default=1.0, show_default=True, help="Seconds between two looks."
)
@click.option("--times", type=click.IntRange(1), help="Look so often and stop.")
@json_option
def status(as_json: bool, watching: bool, interval: float, times: int | None, **where: Any) -> None:
    """Members, topics, queues and lag, as one node sees them; with --watch rates and times of several."""
    if watching:
        if as_json:
            raise BadInput("--watch is for people; ask again and again without it for JSON")
        try:
            run(watch(output, where["nodes"], lambda node: _one(node, where), where["timeout"], interval, times))
        except KeyboardInterrupt:
            return
        return
    said = run(_ask(where))
    if as_json:
        print_json(said)
        return
    for table in status_tables(said):
        output.print(table)


@click.command(epilog=HELD_EXAMPLE)
@client_options
@click.option("--only-named", is_flag=True, help="Look for what is missing at the nodes named, not at other members.")
@json_option
def held(as_json: bool, only_named: bool, **where: Any) -> None:
    """Which messages nodes hold: what each waits for, link by link, where that is, and what comes next."""
    for node in where["nodes"]:
        Address.parse(node)
    asking = held_across(where["nodes"], lambda node: _one(node, where), where["timeout"], ask_members=not only_named)
    found = run(asking)
    if not found["nodes"]:
        raise BadInput("; ".join(f"{address}: {reason}" for address, reason in found["silent"].items()))
    if as_json:
        print_json(found)
    else:
        print_held(output, found)


async def _ask(where: dict[str, Any]) -> dict[str, Any]:
    async with connecting(**where) as client:
        return await client.status()


def _one(node: str, where: dict[str, Any]) -> Connecting:
    return connecting(**where | {"nodes": (node,)})
