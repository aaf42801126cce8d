"""What the commands that talk to a running node share."""

from collections.abc import Callable
from typing import Any

import click

from cubecast.api.connect import Connecting, connect

DEFAULT_NODE = "127.0.0.1:7400"

_node = click.option(
    "--node",
    "nodes",
    multiple=True,
    default=(DEFAULT_NODE,),
    show_default=True,
    metavar="HOST:PORT",
    help="A node to talk to; several are tried in turn, and when one is lost the next is used.",
)
_cluster = click.option("--cluster", default="cubecast", show_default=True, help="The cluster's name.")
_timeout = click.option("--timeout", default=5.0, show_default=True, help="Seconds to wait for a node to answer.")


def client_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--node, --cluster and --timeout; the command gets them as arguments of `connecting`."""
    return _node(_cluster(_timeout(command)))


def connecting(nodes: tuple[str, ...], cluster: str, timeout: float) -> Connecting:
    return connect(*nodes, cluster=cluster, timeout=timeout, name="command line")
