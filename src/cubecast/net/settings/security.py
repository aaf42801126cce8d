"""What can be chosen about security, validated once, and what it leaves open. Times are in seconds, sizes in bytes."""

import ipaddress
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from cubecast.addresses import Address
from cubecast.errors import BadInput
from cubecast.escaping import visible
from cubecast.net.settings.fields import MAX_FRAME, setting

MANY = 1_000_000
TIB = 1 << 40


@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """Encryption and certificates. A node needs the first three settings, a client without a certificate the `ca`."""

    cert: Path | None = setting(None, file=True)
    """This side's certificate, followed by intermediate ones, in PEM. Read again with the settings."""
    key: Path | None = setting(None, file=True)
    """Its private key in PEM, without a password."""
    ca: Path | None = setting(None, file=True)
    """The certificates of those whose signatures are believed."""
    revoked: Path | None = setting(None, file=True)
    """A list of revoked certificates, signed by the `ca`."""

    def __post_init__(self) -> None:
        if self.ca is None:
            raise BadInput("TLS needs a certificate authority to believe: name its file with --tls-ca")
        if (self.cert is None) != (self.key is None):
            raise BadInput("a certificate needs its key and a key its certificate: give both --tls-cert and --tls-key")

    def check_for_node(self) -> None:
        if self.cert is None:
            raise BadInput("a node that speaks TLS needs a certificate: name its files with --tls-cert and --tls-key")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one caller may take up, so that it hurts no other caller. Who is connected keeps what counted then."""

    greeting_time: float = setting(5.0, least=0.01, most=3600, unit="seconds", reload=True)
    """How long a caller may take to say, and prove, who it is, the TLS handshake included."""
    first_frame: int = setting(16 << 10, least=1 << 10, most=MAX_FRAME, unit="bytes", reload=True)
    """The largest frame of a caller that has not said who it is."""
    unauthenticated: int = setting(256, least=1, most=MANY, reload=True)
    """Callers at a time that have not said who they are; beyond, the address with most of them loses the oldest."""
    handshakes_per_second: float = setting(100.0, least=0, reload=True)
    """TLS handshakes that callers from one address may begin per second; beyond, they wait their turn. 0: no limit."""
    clients_per_address: int = setting(1000, least=1, most=MANY, reload=True)
    """Thin clients from one address."""
    clients_per_principal: int = setting(1000, least=1, most=MANY, reload=True)
    """Thin clients that proved to be the same principal."""
    subscriptions: int = setting(10_000, least=1, most=MANY, reload=True)
    """Subscriptions of one client."""
    subscriptions_per_pattern: int = setting(64, least=1, most=MANY, reload=True)
    """Subscriptions of one client with the same pattern: each message goes to every one of them."""
    memory_per_client: int = setting(32 << 20, least=1 << 10, most=TIB, unit="bytes", reload=True)
    """What a node may keep for the subscriptions of one client: 2 KiB each, and 512 bytes per publisher of the cut they
    began with."""
    memory_per_source: int = setting(128 << 20, least=1 << 10, most=TIB, unit="bytes", reload=True)
    """The same for all clients from one address, and for all of one principal."""
    memory: int = setting(512 << 20, least=1 << 10, most=TIB, unit="bytes", reload=True)
    """The same for all clients of the node together; and as much may wait in all for clients that do not read, beyond
    which the one for which most waits is cut off."""
    topics_per_principal: int = setting(100_000, least=1, most=MANY, reload=True)
    """Topics new to this node that one principal may publish on or subscribe to while the node lives: it keeps each."""
    messages_per_second: float = setting(0.0, least=0, reload=True)
    """Messages one client may publish per second; it is held back beyond. 0: no limit."""
    bytes_per_second: float = setting(0.0, least=0, reload=True)
    """Bytes one client may publish per second; it is held back beyond. 0: no limit."""
    burst: float = setting(1.0, least=0.001, most=3600, unit="seconds", reload=True)
    """So many seconds' worth of messages, bytes and handshakes may come at once."""
    requests_per_second: float = setting(10_000.0, least=1, reload=True)
    """Requests other than publications (subscribing, asking) of one client; one that makes more is cut off."""

    @property
    def restrict_clients(self) -> bool:
        """Is there anything to count about what a client publishes?"""
        return self.messages_per_second > 0 or self.bytes_per_second > 0


# What a node leaves open to others: addresses in the clear, pages of other origins, files it keeps.
#
# A browser says with `Origin` which page asks, and no page can make it lie. Without that check any page a user happens
# to visit could talk to a node on their machine or in their network.


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
