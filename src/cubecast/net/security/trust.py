"""Whether a certificate that was good when its owner came would still be believed, after the files have changed.

OpenSSL decides that in a handshake and at no other time. So the chain it verified then is held against the authorities
and the lists of revoked certificates that are in force now. Follows decision 0031.
"""

import re
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

from cubecast.errors import BadInput
from cubecast.net.settings.security import TlsSettings

_CERTIFICATES = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_LISTS = re.compile(rb"-----BEGIN X509 CRL-----.+?-----END X509 CRL-----", re.DOTALL)


def verified_chain(secured: Any) -> list[bytes]:
    """What the other end of a TLS connection proved, its own certificate first; empty when it showed none."""
    # Public from Python 3.13 on; before, the same function of the object that does the work.
    found = getattr(secured, "get_verified_chain", None)
    if found is not None:
        return [bytes(one) for one in found() or ()]
    chain = secured._sslobj.get_verified_chain() or ()
    return [ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in chain]


class Trust:
    """The authorities and the lists of one moment."""

    def __init__(self, settings: TlsSettings) -> None:
        paths = [path for path in (settings.ca, settings.revoked) if path is not None]
        self._authorities: dict[bytes, x509.Certificate] = {}
        self._revoked: dict[bytes, set[int]] = {}
        for path in paths:
            try:
                self._read(path.read_bytes())
            except (OSError, ValueError) as error:
                raise BadInput(f"cannot read {path}: {error}") from None

    def _read(self, data: bytes) -> None:
        for one in _CERTIFICATES.findall(data):
            certificate = x509.load_pem_x509_certificate(one)
            if certificate.issuer == certificate.subject:
                self._authorities[certificate.public_bytes(Encoding.DER)] = certificate
        for one in _LISTS.findall(data):
            listed = x509.load_pem_x509_crl(one)
            serials = self._revoked.setdefault(listed.issuer.public_bytes(), set())
            serials.update(entry.serial_number for entry in listed)

    def objection(self, chain: Sequence[bytes]) -> str | None:
        """Why no peer would be let in with it now; None also for who never showed a certificate."""
        if not chain:
            return None
        certificates = [x509.load_der_x509_certificate(one) for one in chain]
        first, now = certificates[0], datetime.now(UTC)
        if first.serial_number in self._revoked.get(first.issuer.public_bytes(), ()):
            return "its certificate is revoked"
        if any(one.not_valid_after_utc < now for one in certificates):
            return "its certificate has expired"
        if chain[-1] in self._authorities or any(map(self._is_issued, certificates)):
            return None
        return "its certificate is by an authority that is not believed any more"

    def _is_issued(self, certificate: x509.Certificate) -> bool:
        """An authority may have been issued anew, with the key it had."""
        for authority in self._authorities.values():
            try:
                certificate.verify_directly_issued_by(authority)
            except (ValueError, TypeError, InvalidSignature):
                continue
            return True
        return False
