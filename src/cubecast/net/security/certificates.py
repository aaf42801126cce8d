"""A certificate authority for development: one directory with its certificate, its key and whatever it issued.

Files: `ca.pem`, `ca.key`, `NAME.pem`, `NAME.key`, and `revoked.pem` once something was revoked. Keys are for P-256, and
their files for their owner only. Follows decision 0022.
"""

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.net.security.credentials import check_name
from cubecast.net.security.identity import client_uri, node_uri

CA_DAYS, DAYS, MOST_DAYS = 3650, 365, 36_500
BACKDATED = timedelta(hours=1)
"""Clocks differ."""
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Subject:
    """Whom a certificate is for."""

    name: str
    cluster: str = "cubecast"
    nodes: tuple[NodeId | None, ...] = ()
    """The ids its owner may hold; None is any."""
    is_client: bool = False
    hosts: tuple[str, ...] = LOCAL_HOSTS
    begins: datetime | None = None
    days: float = DAYS


class Authority:
    def __init__(self, directory: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._directory, self._certificate, self._key = directory, certificate, key

    @classmethod
    def create(cls, directory: Path) -> "Authority":
        """A new one; BadInput when the directory has one already."""
        if (directory / "ca.key").exists():
            raise BadInput(f"{directory} has an authority already; another one would make its certificates worthless")
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot make {directory}: {error.strerror}") from None
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cubecast development authority")])
        builder = _builder(name, name, key.public_key(), None, CA_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs=True), critical=True)
        certificate = builder.sign(key, hashes.SHA256())
        _write_key(directory / "ca.key", key)
        _write(directory / "ca.pem", certificate.public_bytes(Encoding.PEM))
        return cls(directory, certificate, key)

    @classmethod
    def load(cls, directory: Path) -> "Authority":
        try:
            certificate = x509.load_pem_x509_certificate((directory / "ca.pem").read_bytes())
            key = load_pem_private_key((directory / "ca.key").read_bytes(), None)
        except (OSError, ValueError, TypeError):
            raise BadInput(f"{directory} holds no authority; make one with `cubecast certs init {directory}`") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise BadInput(f"{directory / 'ca.key'} is not a key this helper made")
        return cls(directory, certificate, key)

    def issue(self, subject: Subject) -> Path:
        """The certificate's file; its key lies beside it. A name that is taken is issued again, with a new key."""
        if not subject.nodes and not subject.is_client:
            raise BadInput("a certificate is for a node, for a client, or for both: say which")
        name = check_name(subject.name)
        if not 0 < subject.days <= MOST_DAYS:
            raise BadInput(f"a certificate is valid for up to {MOST_DAYS} days, not for {subject.days:g}")
        if name in ("ca", "revoked"):
            raise BadInput(f"{name!r} is the name of one of the authority's own files")
        key = ec.generate_private_key(ec.SECP256R1())
        full = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(full, self._certificate.subject, key.public_key(), subject.begins, subject.days)
        for extension, critical in self._extensions(subject):
            builder = builder.add_extension(extension, critical=critical)
        _write_key(self._directory / f"{name}.key", key)
        path = self._directory / f"{name}.pem"
        _write(path, builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        return path

    def revoke(self, names: Sequence[str], days: float = CA_DAYS) -> Path:
        """A list of everything revoked so far and the certificates of these names."""
        path, now = self._directory / "revoked.pem", datetime.now(UTC)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._certificate.subject)
        builder = builder.last_update(now - BACKDATED).next_update(now + timedelta(days=days))
        # All authorities of this helper have one name; while one replaces another, only this tells their lists apart.
        builder = builder.add_extension(self._key_identifier(), critical=False)
        serials = [*_revoked(path), *(self._serial(name) for name in names)]
        for serial in dict.fromkeys(serials):
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
            builder = builder.add_revoked_certificate(entry.build())
        _write(path, builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        return path

    def _key_identifier(self) -> x509.AuthorityKeyIdentifier:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())

    def _serial(self, name: str) -> int:
        try:
            return x509.load_pem_x509_certificate((self._directory / f"{name}.pem").read_bytes()).serial_number
        except (OSError, ValueError):
            raise BadInput(f"{self._directory} holds no certificate {name!r}") from None

    def _extensions(self, subject: Subject) -> list[tuple[x509.ExtensionType, bool]]:
        names: list[x509.GeneralName] = [
            x509.UniformResourceIdentifier(node_uri(subject.cluster, node)) for node in subject.nodes
        ]
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if subject.nodes:
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
            names += [_host(host) for host in subject.hosts]
        if subject.is_client:
            names.append(x509.UniformResourceIdentifier(client_uri(subject.cluster, subject.name)))
        return [
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (_usage(signs=False), True),
            (x509.ExtendedKeyUsage(purposes), False),
            (x509.SubjectAlternativeName(names), False),
            (self._key_identifier(), False),
        ]


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    begins: datetime | None,
    days: float,
) -> x509.CertificateBuilder:
    begins = datetime.now(UTC) - BACKDATED if begins is None else begins
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _revoked(path: Path) -> list[int]:
    """The numbers of the certificates on a list; none when there is no list yet."""
    try:
        return [entry.serial_number for entry in x509.load_pem_x509_crl(path.read_bytes())] if path.exists() else []
    except (OSError, ValueError):
        raise BadInput(f"{path} is no list of revoked certificates; put one back, or remove it to begin anew") from None


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise BadInput(f"{host!r} is no name of a host") from None


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    write_secret(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def write_secret(path: Path, content: bytes) -> None:
    """For its owner only, from the first moment on; an older file of the name is replaced, however readable it was."""
    _write(path, content, 0o600)


def _write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """All of it or nothing: a node may read it at any moment."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
        new.replace(path)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}") from None
