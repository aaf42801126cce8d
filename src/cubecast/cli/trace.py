"""`cubecast trace`: the journals of running nodes, switched on and off, and made into a trace."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from cubecast.api.connect import Connecting
from cubecast.cli.client_options import client_options, connecting, login
from cubecast.cli.common import json_option, print_json
from cubecast.cli.screen import output
from cubecast.net.links.loop import run as run_loop

EXAMPLE = """
\b
Example:
  cubecast trace on --node 127.0.0.1:7400 --node 127.0.0.1:7401 --run monday
  cubecast trace off --node 127.0.0.1:7400 --node 127.0.0.1:7401
  cubecast trace collect data/traces/monday --out out/monday
  cubecast check out/monday
"""


@click.group(epilog=EXAMPLE)
def trace() -> None:
    """Record what running nodes do, for the judges. Nodes must serve HTTP (--http)."""


@trace.command()
@client_options
@click.option(
    "--run", "name", help="Name of the trace (default: the time of day); one directory per name at each node."
)
@json_option
def on(name: str | None, as_json: bool, **where: Any) -> None:
    """Begin to record at every --node."""
    _switch(where, name or datetime.now(UTC).strftime("%Y%m%d-%H%M%S"), as_json)


@trace.command()
@client_options
@json_option
def off(as_json: bool, **where: Any) -> None:
    """Stop recording at every --node; the nodes go on."""
    _switch(where, None, as_json)


@trace.command()
@click.argument("journals", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Where the trace goes.")
@json_option
def collect(journals: Path, out: Path, as_json: bool) -> None:
    """Make one trace of the journals of several nodes, brought together in one directory."""
    from cubecast.report.journals import collect_journals

    found = collect_journals(journals, out)
    if as_json:
        print_json(found)
        return
    output.print(f"{found['rows']:,} rows of {found['nodes']} nodes in {out}")
    if found["partial"]:
        output.print(f"This trace is partial: {found['partial']}.")
    for node, incarnation in found["publishers_without_a_journal"]:
        output.print(f"Left out: node {node}.{incarnation}, which left no journal.")
    for name in found["lost_journals"]:
        output.print(f"Incomplete: {name}, which could not be written any more while its node went on.")


def _switch(where: dict[str, Any], name: str | None, as_json: bool) -> None:
    from cubecast.report.live_status import switch_each

    def connect(node: str) -> Connecting:
        return connecting(**where | {"nodes": (node,)})

    done = run_loop(switch_each(where["nodes"], connect, where["timeout"], name, login(**where)))
    if as_json:
        print_json({"nodes": done})
        return
    for one in done:
        doing = "records to" if one["on"] else "recorded to"
        output.print(f"node {one['node']} {doing} {one['directory']}")
