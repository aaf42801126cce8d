"""What can be chosen about security, validated once. Times are in seconds, sizes in bytes."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cubecast.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """Files in PEM. A node needs all three; a thin client the `ca`, and the others if it has a certificate."""

    cert: Path | None = None
    """This side's certificate, followed by intermediate ones."""
    key: Path | None = None
    ca: Path | None = None
    """Whose signatures are believed."""
    revoked: Path | None = None
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
    """What one caller may take up, so that it hurts nobody else."""

    greeting_time: float = 5.0
    """From connecting to having said, and proved, who it is; the TLS handshake included."""
    first_frame: int = 16 << 10
    """The largest frame of somebody who has not."""
    strangers: int = 256
    """Connections of those who have not; beyond, whoever has most of them loses the oldest."""
    clients_per_address: int = 1000
    clients_per_principal: int = 1000
    subscriptions: int = 10_000
    """Of one client."""
    messages_per_second: float = 0.0
    """That one client may publish, held back beyond; 0: no limit."""
    bytes_per_second: float = 0.0
    burst: float = 1.0
    """Seconds' worth of both that may come at once."""
    requests_per_second: float = 10_000.0
    """Of other kinds (subscribing, asking); who asks for more is cut off."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            may_be_zero = one.name in ("messages_per_second", "bytes_per_second")
            if value < 0 or (value == 0 and not may_be_zero):
                raise BadInput(f"the limit {one.name} must be above 0, not {value}")


def read_security(name: str, table: Any) -> TlsSettings | Limits:
    """The tables `tls` and `limits` of a file."""
    kind = TlsSettings if name == "tls" else Limits
    if not isinstance(table, dict):
        raise BadInput(f"{name} is a table, not {table!r}")
    known = [one.name for one in fields(kind)]
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise BadInput(f"{name}: unknown settings {', '.join(unknown)}; known are {', '.join(known)}")
    if kind is TlsSettings:
        return TlsSettings(**{key: _path(key, value) for key, value in table.items()})
    return Limits(**{key: _number(key, value) for key, value in table.items()})


def _path(key: str, value: Any) -> Path:
    if not isinstance(value, str):
        raise BadInput(f"tls.{key} is the name of a file, not {value!r}")
    return Path(value)


def _number(key: str, value: Any) -> Any:
    whole = isinstance(getattr(Limits, key), int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise BadInput(f"limits.{key} is a {'whole ' if whole else ''}number, not {value!r}")
    return value
