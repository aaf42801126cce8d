"""Certificates of all kinds, good and bad, made once for a session of tests."""

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from cubecast.net.security.certificates import LOCAL_HOSTS, Authority, Subject
from cubecast.net.settings.security import TlsSettings

CLUSTER = "cubecast"


class Certificates:
    """A directory with two authorities, `ours` and `theirs`, and whatever the tests ask for by name."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._authorities = {name: Authority.create(directory / name) for name in ("ours", "theirs")}
        self._made: dict[tuple[object, ...], TlsSettings] = {}

    def make(
        self,
        name: str,
        nodes: tuple[int | None, ...] = (),
        *,
        is_client: bool = False,
        cluster: str = CLUSTER,
        hosts: tuple[str, ...] = LOCAL_HOSTS,
        begins_in_days: float = -1.0,
        days: float = 30.0,
        signed_by: str = "ours",
        believes: str = "ours",
    ) -> TlsSettings:
        """The settings of whoever holds it; asked for again, the same."""
        key = (name, nodes, is_client, cluster, hosts, begins_in_days, days, signed_by, believes)
        if key not in self._made:
            begins = datetime.now(UTC) + timedelta(days=begins_in_days)
            unique = f"{name}-{len(self._made)}" if not is_client else name
            subject = Subject(unique, cluster, nodes, is_client, hosts, begins, days)
            path = self._authorities[signed_by].issue(subject)
            ca = self.directory / believes / "ca.pem"
            self._made[key] = TlsSettings(cert=path, key=path.with_suffix(".key"), ca=ca)
        return self._made[key]

    @property
    def node(self) -> TlsSettings:
        """Good for any node."""
        return self.make("node", (None,))

    @property
    def anybody(self) -> TlsSettings:
        """Of a client without a certificate."""
        return TlsSettings(ca=self.directory / "ours" / "ca.pem")

    def client(self, name: str) -> TlsSettings:
        return self.make(name, is_client=True)

    def revoked(self, settings: TlsSettings) -> Path:
        """A list with this certificate on it."""
        assert settings.cert is not None
        return self._authorities["ours"].revoke([settings.cert.stem])


_directory = TemporaryDirectory(prefix="cubecast-certificates-")


@cache
def certificates() -> Certificates:
    return Certificates(Path(_directory.name))
