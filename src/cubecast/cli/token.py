"""`cubecast token`: what clients prove themselves with."""

from pathlib import Path

import click

from cubecast.net.security.certificates import write_secret
from cubecast.net.security.credentials import check_name, digest, new_token
from cubecast.net.security.keys import new_key, read_private, written

EXAMPLE = """
\b
Example: the secret goes into a file for the client, the printed lines into the nodes' policy.
  cubecast token new alice --out alice.token >> policy.toml
  cubecast pub greetings hello --token-file alice.token
"""

_out = click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file for the secret."
)


@click.group(epilog=EXAMPLE)
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
