"""`cubecast node`: run one node until it is told to stop; the settings of a node as options.

Those people use often have options of their own, every other setting goes with --set.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cubecast.errors import BadInput
from cubecast.net.daemon import serve
from cubecast.net.links.loop import run
from cubecast.net.live_node import LiveNode
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.resolve import Sources, resolve

KEYS = {
    "id": "node",
    "listen": "listen",
    "advertise": "advertise",
    "join": "join",
    "data": "data",
    "log": "log",
    "trace": "journal",
    "http": "http",
    "ws-origin": "ws_origins",
    "protocol": "protocol",
    "cluster": "cluster",
    "dimension": "dimension",
    "tls-cert": "tls.cert",
    "tls-key": "tls.key",
    "tls-ca": "tls.ca",
    "tls-revoked": "tls.revoked",
    "policy": "policy",
    "insecure": "insecure",
    "log-level": "logging.level",
    "log-format": "logging.format",
}
"""The setting behind each option."""

_OPTIONS = (
    click.option("--id", metavar="N", help="The id to hold; without, a free one is assigned."),
    click.option("--listen", metavar="HOST:PORT", help="Where this node listens (default 127.0.0.1 and a free port)."),
    click.option(
        "--advertise", metavar="HOST:PORT", help="What others dial, when it is not what this node listens on."
    ),
    click.option(
        "--join", metavar="HOST:PORT", multiple=True, help="Any member of the cluster; without, a new one begins."
    ),
    click.option("--data", metavar="DIRECTORY", help="Where the node keeps what it remembers."),
    click.option("--log", metavar="PATTERN", multiple=True, help="Topics to keep in a log there; '>' for all."),
    click.option("--trace", metavar="DIRECTORY", help="Where to write this node's journal."),
    click.option("--http", metavar="HOST:PORT", help="Where to serve health, metrics and pages; without, nowhere."),
    click.option(
        "--ws-origin",
        metavar="ORIGIN",
        multiple=True,
        help="Pages of this origin may use the node's WebSocket, besides its own.",
    ),
    click.option("--protocol", metavar="NAME", help="What the cluster runs (default cubecast)."),
    click.option("--cluster", help="The cluster's name; nodes of other clusters are refused."),
    click.option("--dimension", metavar="D", help="A new cluster's cube has 2^D ids."),
    click.option("--tls-cert", metavar="FILE", help="This node's certificate; with it, only TLS is spoken."),
    click.option("--tls-key", metavar="FILE", help="Its key."),
    click.option("--tls-ca", metavar="FILE", help="The authority whose certificates are believed."),
    click.option("--tls-revoked", metavar="FILE", help="Its list of revoked certificates."),
    click.option("--policy", metavar="FILE.toml", help="Who may do what; without, every client may do everything."),
    click.option("--insecure", flag_value="true", is_flag=False, help="Listen beyond this machine without TLS."),
    click.option("--log-level", metavar="LEVEL", help="debug, info, warning or error (default warning)."),
    click.option("--log-format", metavar="FORMAT", help="text, or json for one object per line (default text)."),
    click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Any other setting: --set window=32."),
)
_config = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.toml",
    envvar="CUBECAST_CONFIG",
    show_envvar=True,
    help="All settings.",
)


def setting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command gets what `sources` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def node_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and `config`."""
    return setting_options(_config(command))


def sources(file: Path | None, options: dict[str, Any]) -> Sources:
    named = {name.replace("_", "-"): value for name, value in options.items() if value and name != "settings"}
    given = {KEYS[name]: (f"--{name}", value) for name, value in named.items()}
    for one in options["settings"]:
        key, equals, value = one.partition("=")
        if not equals:
            raise BadInput(f"--set {one}: write KEY=VALUE, for example --set window=32")
        given[key.strip()] = (f"--set {key}", value)
    return Sources(file, dict(os.environ), given)


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
