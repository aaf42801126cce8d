"""`cubecast node`: run one node until it is told to stop."""

import json
from pathlib import Path
from typing import Any

import click

from cubecast.cli.node_options import node_options, sources
from cubecast.net.daemon import serve
from cubecast.net.links.loop import run
from cubecast.net.live_node import LiveNode
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.resolve import resolve

EXAMPLE = """
\b
Example, three nodes on this machine:
  cubecast node --listen 127.0.0.1:7400
  cubecast node --join 127.0.0.1:7400
  cubecast node --join 127.0.0.1:7400
\b
Every setting can be given as an environment variable, too: CUBECAST_LISTEN, CUBECAST_LOGGING__LEVEL.
Options win over the environment, the environment over the file. See `cubecast config show`.
"""


@click.command(epilog=EXAMPLE)
@node_options
@click.option("--json", "as_json", is_flag=True, help="Say where the node listens as one JSON object.")
def node(config: Path | None, as_json: bool, **options: Any) -> None:
    """Run one node. It leaves in good order on SIGTERM or Ctrl-C, and reads its settings again on SIGHUP."""
    given = sources(config, options)
    run(serve(lambda: resolve(NodeConfig, given), lambda live: _announce(live, as_json)))


def _announce(live: LiveNode, as_json: bool) -> None:
    place, web = live.place, live.web
    if as_json:
        about = {"node": place.node, "incarnation": place.incarnation, "address": place.address}
        click.echo(json.dumps(about if web is None else about | {"http": str(web.address)}))
    else:
        served = "" if web is None else f", serves {web.url}"
        click.echo(f"node {place.node} of cluster {live.config.cluster!r} listens on {place.address}{served}")
