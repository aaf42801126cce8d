"""What a node leaves open to others: addresses in the clear, pages of other origins, files it keeps.

A browser says with `Origin` which page asks, and no page can make it lie. Without that check any page a user happens
to visit could talk to a node on their machine or in their network.
"""

import ipaddress
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from cubecast.addresses import Address
from cubecast.errors import BadInput
from cubecast.escaping import visible
from cubecast.net.settings.security import TlsSettings


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def check_listening(listen: Address | None, *, has_tls: bool, insecure: bool) -> None:
    if listen is not None and not (has_tls or insecure or is_loopback(listen.host)):
        raise BadInput(
            f"listening on {listen} without TLS would let everybody on the network read and write: give --tls-cert, "
            "--tls-key and --tls-ca, or --insecure if that is what you want"
        )


ANY = "*"


def split_origin(text: str) -> SplitResult:
    """Its parts; all of them empty for what has none."""
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")


def check_origin(text: str) -> str:
    """An origin as it is written in settings, in the form browsers send."""
    if text == ANY:
        return text
    parts = split_origin(text)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or text.rstrip("/") != f"{parts.scheme}://{parts.netloc}"
    ):
        raise BadInput(f"{text!r} is no origin; write for example https://example.org:8443, or * for all")
    return text.rstrip("/").lower()


class Origins:
    """The node's own pages always; others by name."""

    def __init__(self, others: Iterable[str] = ()) -> None:
        self._others = frozenset(map(check_origin, others))

    def objection(self, origin: str | None, host: str) -> str | None:
        """Why a page of this origin may not; `host` is what the browser called this node. Programs send no origin."""
        if origin is None or ANY in self._others or origin.lower() in self._others:
            return None
        parts = split_origin(origin)
        if parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower():
            return None
        return (
            f"pages of {visible(origin[:200])} may not use this node; whoever runs it can allow them with --ws-origin"
        )


def exposures(tls: TlsSettings | None, data: Path | None) -> Iterator[str]:
    """A line for each file that others on this machine can read, with what to do. Groups are left to the operator:
    services often have their own."""
    if tls is not None and tls.key is not None and _is_open(tls.key, stat.S_IROTH):
        yield f"everybody on this machine can read the private key {tls.key}: chmod o= {tls.key}"
    if data is not None and _is_open(data, stat.S_IROTH | stat.S_IXOTH):
        yield f"everybody on this machine can read what is kept in {data}: chmod o= {data}"


def _is_open(path: Path, to_others: int) -> bool:
    try:
        return bool(path.stat().st_mode & to_others)
    except OSError:
        return False
