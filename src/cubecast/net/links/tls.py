"""TLS 1.3 for a node: what it shows, whom it believes, and both again when the files have changed.

One port serves nodes and thin clients. A certificate is asked for and verified if there is one; whether its owner
needed one is decided when it has said what it wants to be.
"""

import hashlib
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from cubecast.errors import BadInput
from cubecast.net.links.tls_refusals import SpeakingContext
from cubecast.net.security.identity import Identity, identities
from cubecast.net.security.trust import Trust
from cubecast.net.settings.security import TlsSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Loaded:
    """The files, as they were when they were read together."""

    server: ssl.SSLContext
    pages: ssl.SSLContext
    dialling: ssl.SSLContext
    identity: Identity
    channel: bytes


class TlsContext:
    """`reload` replaces everything or nothing: new handshakes use the new files, and a peer that came with a
    certificate that would not be believed now has to go. Other connections go on as they are."""

    def __init__(
        self, settings: TlsSettings, cluster: str, on_trust: Callable[[Trust], None] = lambda trust: None
    ) -> None:
        """`on_trust` is told whom to believe whenever that was read again, for those who were let in before."""
        settings.check_for_node()
        self._settings, self._cluster = settings, cluster
        self._loaded = _load(settings, cluster)
        self.pages = Pages(self)
        self._on_trust = on_trust

    @property
    def server(self) -> ssl.SSLContext:
        """For those who call this node. Ask for it at each connection, or it grows old."""
        return self._loaded.server

    @property
    def for_pages(self) -> ssl.SSLContext:
        """For browsers."""
        return self._loaded.pages

    @property
    def dialling(self) -> ssl.SSLContext:
        """For calling other nodes."""
        return self._loaded.dialling

    @property
    def identity(self) -> Identity:
        """What this node's own certificate says it may be."""
        return self._loaded.identity

    @property
    def channel(self) -> bytes:
        """The digest of this node's certificate, which those who call it see."""
        return self._loaded.channel

    def prepare(self) -> Callable[[], None]:
        """Read the files again; what is returned makes them count. BadInput when they are wrong."""
        loaded, trust = _load(self._settings, self._cluster), Trust(self._settings)
        if loaded.identity != self._loaded.identity:
            raise BadInput(f"{self._settings.cert} is for {loaded.identity} now; it was for {self.identity}")

        def take_effect() -> None:
            self._loaded = loaded
            self._on_trust(trust)

        return take_effect

    def reload(self) -> bool:
        """Read the files again; when they are wrong, one line in the log and everything stays as it was."""
        try:
            self.prepare()()
        except BadInput as error:
            log.error("the certificates stay as they were: %s", error)
            return False
        return True


class Pages:
    """The same certificate for browsers: one that is asked for a certificate of its own asks its user."""

    def __init__(self, tls: TlsContext) -> None:
        self._tls = tls

    @property
    def server(self) -> ssl.SSLContext:
        return self._tls.for_pages

    @property
    def channel(self) -> bytes:
        return self._tls.channel


def client_context(settings: TlsSettings, *, check_hostname: bool = True) -> ssl.SSLContext:
    """For a thin client: the name it dials must be in the node's certificate."""
    return _dialling(settings, check_hostname=check_hostname)


def _load(settings: TlsSettings, cluster: str) -> _Loaded:
    server, pages, dialling = _server(settings), _server(settings), _dialling(settings, check_hostname=False)
    pages.verify_mode = ssl.CERT_NONE
    assert settings.cert is not None, "checked when the settings were taken"
    certificate = _read_certificate(settings.cert)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except x509.ExtensionNotFound:
        uris = []
    except (ValueError, x509.DuplicateExtension):
        raise BadInput(f"{settings.cert} is a certificate whose names cannot be read") from None
    identity = identities(uris).get(cluster)
    if identity is None or not identity.is_node:
        raise BadInput(f"{settings.cert} is not the certificate of a node of cluster {cluster!r}")
    digest = hashlib.sha256(certificate.public_bytes(Encoding.DER)).digest()
    return _Loaded(server, pages, dialling, identity, digest)


def _server(settings: TlsSettings) -> ssl.SSLContext:
    context = SpeakingContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_OPTIONAL
    # Resumed sessions would pass with a certificate that has been revoked or replaced since.
    context.num_tickets = 0
    return _filled(context, settings)


def _dialling(settings: TlsSettings, *, check_hostname: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = check_hostname
    return _filled(context, settings)


def _filled(context: ssl.SSLContext, settings: TlsSettings) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if settings.cert is not None and settings.key is not None:
        _load_own(context, settings.cert, settings.key)
    for path in (settings.ca, settings.revoked):
        if path is not None:
            _believe(context, path)
    if settings.revoked is not None:
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return context


def _load_own(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    def no_password() -> str:
        raise BadInput(f"{key} is protected by a password; a node has nobody to ask for it")

    try:
        context.load_cert_chain(cert, key, no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadInput(f"{key} is not the key of the certificate {cert}") from None
        raise BadInput(f"{cert} and {key} are not a certificate and its key in PEM") from None
    except OSError as error:
        raise BadInput(f"cannot read {_unreadable(cert, key)}: {error.strerror}") from None


def _unreadable(*paths: Path) -> Path:
    """The first of them that is not to be read."""
    for path in paths:
        try:
            path.read_bytes()
        except OSError:
            return path
    return paths[0]


def _believe(context: ssl.SSLContext, path: Path) -> None:
    try:
        context.load_verify_locations(path)
    except ssl.SSLError:
        raise BadInput(f"{path} holds neither certificates nor a list of revoked ones in PEM") from None
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None


def _read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        raise BadInput(f"{path} holds no certificate in PEM") from None
