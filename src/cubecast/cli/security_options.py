"""What a node is told about security on the command line. Only names of files: secrets are for files alone."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from cubecast.net.security.settings import TlsSettings

_file = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option("--tls-cert", type=_file, help="This node's certificate; with it, only TLS is spoken."),
    click.option("--tls-key", type=_file, help="Its key."),
    click.option("--tls-ca", type=_file, help="The authority whose certificates are believed."),
    click.option("--tls-revoked", type=_file, help="Its list of revoked certificates."),
    click.option("--policy", type=_file, metavar="FILE.toml", help="Who may do what; without, everybody everything."),
    click.option("--insecure", is_flag=True, default=None, help="Listen beyond this machine without TLS."),
)


def security_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def take_security(given: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Move what is about TLS out of the options given, onto what the settings' file says about it."""
    named = {name: given.pop(f"tls_{name}") for name in ("cert", "key", "ca", "revoked") if f"tls_{name}" in given}
    if not named:
        return {}
    told = settings.get("tls")
    before = {} if told is None else {one.name: getattr(told, one.name) for one in fields(told)}
    return {"tls": TlsSettings(**before | named)}
