"""`cubecast node`: run one node until it is told to stop."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import click

from cubecast.cli.security_options import security_options, take_security
from cubecast.net.addresses import Address
from cubecast.net.config import NodeConfig
from cubecast.net.loop import run
from cubecast.net.node import LiveNode
from cubecast.net.settings import load

EXAMPLE = """
\b
Example, three nodes on this machine:
  cubecast node --listen 127.0.0.1:7400
  cubecast node --join 127.0.0.1:7400
  cubecast node --join 127.0.0.1:7400
"""


@click.command(epilog=EXAMPLE)
@click.option("--id", "node", type=int, metavar="N", help="The id to hold; without, a free one is assigned.")
@click.option("--listen", metavar="HOST:PORT", help="Where others find this node (default 127.0.0.1 and a free port).")
@click.option("--advertise", metavar="HOST:PORT", help="What others dial, when it is not what this node listens on.")
@click.option(
    "--join", metavar="HOST:PORT", multiple=True, help="Any member of the cluster; without, a new one begins."
)
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Where the node keeps what it remembers."
)
@click.option("--trace", type=click.Path(path_type=Path, file_okay=False), help="Where to write this node's journal.")
@click.option("--cluster", help="The cluster's name; nodes of other clusters are refused.")
@click.option("--dimension", type=int, help="A new cluster's cube has 2^dimension ids.")
@security_options
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml", help="All settings.")
@click.option("--json", "as_json", is_flag=True, help="Say where the node listens as one JSON object.")
def node(config: Path | None, as_json: bool, **options: Any) -> None:
    """Run one node. It leaves in good order on SIGTERM or Ctrl-C."""
    settings = load(config) if config is not None else {}
    given = {name: value for name, value in options.items() if value not in (None, ())}
    for name in {"listen", "advertise"} & set(given):
        given[name] = Address.parse(given[name])
    if "join" in given:
        given["join"] = tuple(Address.parse(one) for one in given["join"])
    if "trace" in given:
        given["journal"] = given.pop("trace")
    given |= take_security(given, settings)
    run(_serve(NodeConfig(**settings | given), as_json))


async def _serve(config: NodeConfig, as_json: bool) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    live = LiveNode(config)
    loop.add_signal_handler(signal.SIGHUP, live.reload)
    starting = asyncio.ensure_future(live.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        return
    await starting
    place = live.place
    if as_json:
        click.echo(json.dumps({"node": place.node, "incarnation": place.incarnation, "address": place.address}))
    else:
        click.echo(f"node {place.node} of cluster {config.cluster!r} listens on {place.address}")
    await stopping
    await live.close()
