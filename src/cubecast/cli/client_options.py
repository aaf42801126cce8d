"""What the commands that talk to a running node share: addresses, credentials, filters; what they send, a text, lines
of standard input or a file, and how they print what comes.
"""

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from cubecast.api.connect import Connecting, connect
from cubecast.api.message import Message
from cubecast.cli.common import complain_of_warnings
from cubecast.errors import BadInput, RemoteProtocolError
from cubecast.headers import HeaderValue, checked
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


# Contents.


def as_text(message: Message, *, show_topic: bool = False) -> str:
    try:
        text = message.body().decode(errors="replace")
    except RemoteProtocolError as error:
        text = f"({error})"  # a publisher sent what no client of ours sends: that is no reason to stop listening
    return f"{message.topic} {text}" if show_topic else text


def as_json(message: Message) -> dict[str, Any]:
    about = {"topic": message.topic, "source": message.source, "incarnation": message.incarnation}
    logged = {} if message.offset is None else {"offset": message.offset, "time": message.time}
    try:
        content = _content(message)
    except RemoteProtocolError as error:
        content = {"garbled": str(error), "base64": base64.b64encode(message.sealed).decode()}
    return {**about, "counter": message.counter, **logged, **content}


def _content(message: Message) -> dict[str, Any]:
    data = message.data
    content = {"base64": base64.b64encode(data).decode()} if isinstance(data, bytes) else {"data": data}
    named = {"principal": message.principal, "headers": message.headers}
    return content | {name: value for name, value in named.items() if value}


_OPTIONS = (
    click.option(
        "--header",
        "headers",
        metavar="NAME=TEXT",
        multiple=True,
        help="A header of every message; NAME:=VALUE for a number, true or false.",
    ),
    click.option(
        "--file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Instead of TEXT or lines: the whole file as one message of bytes.",
    ),
    click.option("--base64", "is_base64", is_flag=True, help="TEXT, or each line, is Base64 of bytes."),
    click.option("--jsonl", "is_json", is_flag=True, help="TEXT, or each line, is JSON and travels as that."),
)


def content_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command gets the arguments of `Contents` but the first two, and `headers`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class Contents:
    """Iterate over it; BadInput names the line that is not what it should be."""

    text: str | None
    count: int | None
    """How often the text, or how many lines at most."""
    file: Path | None
    is_base64: bool
    is_json: bool

    def __post_init__(self) -> None:
        if self.file is not None and (self.text is not None or self.is_base64 or self.is_json):
            raise BadInput("--file is one message of bytes; leave out TEXT, --base64 and --jsonl")
        if self.is_base64 and self.is_json:
            raise BadInput("a message is --base64 or --jsonl, not both")

    async def __aiter__(self) -> AsyncIterator[Any]:
        if self.file is not None or self.text is not None:
            content = self._whole(self.file) if self.file is not None else self._understood(self.text or "", "TEXT", "")
            for _ in range(self.count or 1):
                yield content
            return
        given = 0
        while given != self.count and (line := await asyncio.to_thread(sys.stdin.buffer.readline)):
            place, done = f"line {given + 1} of the input", f"; {given} lines were sent"
            try:
                yield self._understood(line.decode().rstrip("\r\n"), place, done)
            except UnicodeDecodeError:
                raise BadInput(f"{place} is not UTF-8 text{done}") from None
            given += 1

    def _understood(self, text: str, place: str, done: str) -> Any:
        try:
            if self.is_base64:
                return base64.b64decode(text, validate=True)
            return json.loads(text, parse_constant=_no_number) if self.is_json else text
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{place} is not {'Base64' if self.is_base64 else 'JSON'}: {error}{done}") from None

    def _whole(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror}") from None


def _no_number(text: str) -> None:
    raise ValueError(f"it has no {text}")


def parsed_headers(pairs: tuple[str, ...]) -> dict[str, HeaderValue] | None:
    found: dict[str, HeaderValue] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        is_typed = name.endswith(":")
        name = name.removesuffix(":")
        if not name or not equals:
            raise BadInput(f"--header {pair}: write NAME=VALUE, or NAME:=VALUE for a number, true or false")
        found[name] = _typed(pair, value) if is_typed else value
    return checked(found) or None


def _typed(pair: str, text: str) -> HeaderValue:
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, str | bool | int | float):
        raise BadInput(f"--header {pair}: behind := comes a number, true or false; write NAME=VALUE for text")
    return value
