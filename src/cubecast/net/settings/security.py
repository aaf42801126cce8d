"""What can be chosen about security, validated once. Times are in seconds, sizes in bytes."""

from dataclasses import dataclass
from pathlib import Path

from cubecast.errors import BadInput
from cubecast.net.settings.bounds import MAX_FRAME
from cubecast.net.settings.fields import setting

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
    strangers: int = setting(256, least=1, most=MANY, reload=True)
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
