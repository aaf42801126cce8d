"""`cubecast certs` and `cubecast token`: what nodes and clients prove themselves with."""

from pathlib import Path

import click

from cubecast.errors import BadInput
from cubecast.net.security.certificates import DAYS, LOCAL_HOSTS, Authority, Subject, write_secret
from cubecast.net.security.credentials import check_name, digest, new_token
from cubecast.net.security.keys import new_key, read_private, written

CERTS_EXAMPLE = """
\b
Example: the secret goes into a file for the client, the printed lines into the nodes' policy.
  cubecast token new alice --out alice.token >> policy.toml
  cubecast pub greetings hello --token-file alice.token
"""

_out = click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file for the secret."
)


@click.group(epilog=CERTS_EXAMPLE)
def token() -> None:
    """Make tokens and keys for clients."""


@token.command()
@click.argument("name")
@click.option("--cluster", default="cubecast", show_default=True, help="The cluster it is good for.")
@_out
def new(name: str, cluster: str, out: Path) -> None:
    """Make a token for NAME and print what a policy needs to know it by."""
    secret = new_token(name)
    write_secret(out, f"{secret}\n".encode())
    click.echo(f'[principals."{name}"]\ntokens = ["{digest(secret, cluster)}"]')


@token.command()
@click.argument("name")
@_out
def key(name: str, out: Path) -> None:
    """Make a private Ed25519 key for NAME, or take the one in the file, and print its public half for a policy."""
    check_name(name)
    if out.exists():
        public = written(read_private(out))
    else:
        private, public = new_key()
        write_secret(out, private)
    click.echo(f'[principals."{name}"]\nkeys = ["{public}"]')


TOKEN_EXAMPLE = """
\b
Example, an authority, a node that may hold any id, and a client:
  cubecast certs init certs
  cubecast certs issue certs node --node any
  cubecast certs issue certs alice --client
  cubecast node --tls-cert certs/node.pem --tls-key certs/node.key --tls-ca certs/ca.pem
"""

_directory = click.argument("directory", type=click.Path(path_type=Path, file_okay=False))


@click.group(epilog=TOKEN_EXAMPLE)
def certs() -> None:
    """Make certificates for nodes and clients."""


@certs.command()
@_directory
def init(directory: Path) -> None:
    """Make an authority in DIRECTORY: ca.pem, which everybody gets, and ca.key, which nobody gets."""
    Authority.create(directory)
    click.echo(f"{directory / 'ca.pem'} is to be believed; keep {directory / 'ca.key'} to yourself")


@certs.command()
@_directory
@click.argument("name")
@click.option("--node", "nodes", multiple=True, metavar="ID|any", help="An id that the owner may hold, or any.")
@click.option("--client", is_flag=True, help="The owner is a client, known to policies as NAME.")
@click.option("--cluster", default="cubecast", show_default=True, help="The cluster it is good for.")
@click.option("--host", "hosts", multiple=True, help="A name or address of the node (default: this machine).")
@click.option("--days", default=float(DAYS), show_default=True, help="How long it is valid.")
def issue(
    directory: Path, name: str, nodes: tuple[str, ...], client: bool, cluster: str, hosts: tuple[str, ...], days: float
) -> None:
    """Issue NAME.pem and NAME.key, anew if they exist."""
    subject = Subject(name, cluster, tuple(map(_id, nodes)), client, hosts or LOCAL_HOSTS, days=days)
    path = Authority.load(directory).issue(subject)
    click.echo(f"{path} with {path.with_suffix('.key')}")


@certs.command()
@_directory
@click.argument("names", nargs=-1)
def revoke(directory: Path, names: tuple[str, ...]) -> None:
    """Put certificates on the list of revoked ones, which nodes read with --tls-revoked; without NAMES, renew it."""
    click.echo(str(Authority.load(directory).revoke(names)))


def _id(text: str) -> int | None:
    if text == "any":
        return None
    if not text.isdecimal():
        raise BadInput(f"--node is an id or 'any', not {text!r}")
    return int(text)
