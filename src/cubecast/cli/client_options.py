"""What the commands that talk to a running node share: addresses, credentials, filters."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cubecast.api.connect import Connecting, connect
from cubecast.cli.common import complain_of_warnings
from cubecast.errors import BadInput
from cubecast.net.gateway.client import complain
from cubecast.net.links.login import Login, from_environment
from cubecast.net.settings.security import TlsSettings
from cubecast.protocol.filters import parse

# What the commands that talk to a running node share

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


_file = click.Path(path_type=Path, dir_okay=False)
_SECURITY = (
    click.option("--tls-ca", type=_file, help="Speak TLS; the authority whose certificates are believed."),
    click.option("--tls-cert", type=_file, help="This client's certificate."),
    click.option("--tls-key", type=_file, help="Its key."),
    click.option("--token-file", type=_file, help="A token that proves who you are (or $CUBECAST_TOKEN)."),
    click.option("--key-file", type=_file, help="A private key that proves that you are --principal."),
    click.option("--principal", metavar="NAME", help="Whose key it is."),
)


def client_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--node, --cluster, --timeout and proofs; the command gets them as arguments of `connecting`."""
    return _node(proof_options(command))


def proof_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same for commands that say themselves what nodes are asked for."""
    for option in reversed(_SECURITY):
        command = option(command)
    return _cluster(_timeout(command))


def connecting(
    nodes: tuple[str, ...],
    cluster: str,
    timeout: float,
    on_refused: Callable[[str], object] = complain,
    **proofs: Any,
) -> Connecting:
    complain_of_warnings()
    return connect(
        *nodes, cluster=cluster, timeout=timeout, name="command line", on_refused=on_refused, login=login(**proofs)
    )


def login(
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    token_file: Path | None,
    key_file: Path | None,
    principal: str | None,
    **_: Any,
) -> Login:
    """Out of all that `client_options` gives."""
    named = (tls_ca, tls_cert, tls_key) != (None, None, None)
    tls = TlsSettings(ca=tls_ca, cert=tls_cert, key=tls_key) if named else None
    given: dict[str, Any] = {} if key_file is not None else from_environment()
    if token_file is not None:
        given = {"token_file": token_file}
    return Login(tls=tls, key_file=key_file, name=principal, **given)


# The filter of `sub` and `serve`

where_option = click.option(
    "--where",
    "filter_text",
    metavar="FILTER",
    help="Only messages whose headers match, such as \"price >= 10 and region in ('eu', 'us')\".",
)


def check_filter(text: str | None) -> None:
    """Before any node is asked."""
    if text is not None:
        try:
            parse(text)
        except BadInput as error:
            raise BadInput(f"--where: {error}") from None
