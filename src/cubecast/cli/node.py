"""`cubecast node`: run one node until it is told to stop."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import click

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
@click.option("--http", metavar="HOST:PORT", help="Where to serve health, metrics and pages; without, nowhere.")
@click.option(
    "--ws-origin",
    "ws_origins",
    metavar="ORIGIN",
    multiple=True,
    help="Pages of this origin may use the node's WebSocket, besides its own.",
)
@click.option("--cluster", help="The cluster's name; nodes of other clusters are refused.")
@click.option("--dimension", type=int, help="A new cluster's cube has 2^dimension ids.")
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml", help="All settings.")
@click.option("--json", "as_json", is_flag=True, help="Say where the node listens as one JSON object.")
def node(config: Path | None, as_json: bool, **options: Any) -> None:
    """Run one node. It leaves in good order on SIGTERM or Ctrl-C."""
    settings = load(config) if config is not None else {}
    given = {name: value for name, value in options.items() if value not in (None, ())}
    for name in {"listen", "advertise", "http"} & set(given):
        given[name] = Address.parse(given[name])
    if "join" in given:
        given["join"] = tuple(Address.parse(one) for one in given["join"])
    if "trace" in given:
        given["journal"] = given.pop("trace")
    run(_serve(NodeConfig(**settings | given), as_json))


async def _serve(config: NodeConfig, as_json: bool) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    live = LiveNode(config)
    starting = asyncio.ensure_future(live.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        return
    await starting
    _announce(live, as_json)
    await stopping
    await live.close()


def _announce(live: LiveNode, as_json: bool) -> None:
    place, web = live.place, live.web
    if as_json:
        about = {"node": place.node, "incarnation": place.incarnation, "address": place.address}
        click.echo(json.dumps(about if web is None else about | {"http": str(web.address)}))
    else:
        served = "" if web is None else f", serves http://{web.address}"
        click.echo(f"node {place.node} of cluster {live.config.cluster!r} listens on {place.address}{served}")
