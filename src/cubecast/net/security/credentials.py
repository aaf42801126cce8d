"""What proves who a caller is. Secrets never appear in `repr`, so they cannot slip into a log.

Tokens are 256 random bits with a name in front. A policy holds their digests, which are of no use to a thief. A digest
needs neither salt nor slowness because 256 bits cannot be guessed; the cluster's name is hashed along, so that a token
of one cluster is none in another, even where both read the same policy.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from cubecast.errors import BadInput


@dataclass(frozen=True)
class Token:
    """`NAME.SECRET`, as `cubecast token new` made it; in HTTP what follows `Authorization: Bearer`."""

    text: str = field(repr=False)


@dataclass(frozen=True)
class KeyProof:
    """The answer to a challenge, made with a private Ed25519 key."""

    name: str
    challenge: bytes = field(repr=False)
    """Drawn by the node for this connection; the asker of the policy has checked that."""
    channel: bytes = field(repr=False)
    """What both ends know of the connection: the digest of the node's certificate, empty without TLS."""
    signature: bytes = field(repr=False)


@dataclass(frozen=True)
class ClientCertificate:
    """A certificate the TLS layer has verified; the name is the one it was issued to."""

    name: str


Credentials: TypeAlias = Token | KeyProof | ClientCertificate | None
"""None: a client that shows nothing."""


SECRET_BYTES = 32
SECRET_LENGTH = 43
"""Characters of the secret part, base64 for URLs."""
MOST_TOKEN = 256
DIGEST_PREFIX = "sha256:"

_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9_@.-]{0,63}")


def check_name(name: str) -> str:
    """A principal's name; BadInput with the reason."""
    if not _name.fullmatch(name):
        raise BadInput(
            f"{name!r} is no name for a principal: 1 to 64 letters, digits and . _ - @, with a letter or digit first"
        )
    return name


def new_token(name: str) -> str:
    return f"{check_name(name)}.{secrets.token_urlsafe(SECRET_BYTES)}"


def digest(token: str, cluster: str) -> str:
    """What a policy holds instead of the token."""
    text = f"cubecast token\0{cluster}\0{token}".encode("utf-8", "surrogatepass")
    return DIGEST_PREFIX + hashlib.sha256(text).hexdigest()


def check_digest(text: str) -> str:
    if not re.fullmatch(DIGEST_PREFIX + "[0-9a-f]{64}", text):
        raise BadInput(
            f"a token's digest is {DIGEST_PREFIX} and 64 hexadecimal digits; `cubecast token new` prints one"
        )
    return text


def holder(token: str) -> str | None:
    """The name in front, or None for what cannot be a token."""
    name, _, secret = token.rpartition(".")
    fits = len(token) <= MOST_TOKEN and len(secret) == SECRET_LENGTH and _name.fullmatch(name)
    return name if fits else None


def matches(token: str, digests: Iterable[str], cluster: str) -> bool:
    """Takes as long for a wrong token as for a right one."""
    shown, found = digest(token, cluster), False
    for known in digests:
        found |= hmac.compare_digest(known, shown)
    return found


# Ed25519 keys: a client signs what the node made up, so that nothing worth stealing crosses the connection.

KEY_PREFIX = "ed25519:"
NOBODYS_KEY = Ed25519PrivateKey.generate().public_key()


def statement(cluster: str, name: str, challenge: bytes, channel: bytes) -> bytes:
    """What is signed: for this cluster, this name, this challenge and this node's certificate, and nothing else."""
    parts = (b"cubecast key proof 1", cluster.encode(), name.encode(), challenge, channel)
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def new_key() -> tuple[bytes, str]:
    """A private key as PEM, and its public half as a policy writes it."""
    private = Ed25519PrivateKey.generate()
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), written(private)


def written(private: Ed25519PrivateKey) -> str:
    """The public half, for a policy."""
    raw = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return KEY_PREFIX + base64.b64encode(raw).decode()


def read_private(path: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, TypeError):
        raise BadInput(f"{path} holds no private key in PEM without a password") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInput(f"{path} holds a private key, but none for Ed25519")
    return key


def read_public(text: str) -> Ed25519PublicKey:
    try:
        if not text.startswith(KEY_PREFIX):
            raise ValueError
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(text.removeprefix(KEY_PREFIX), validate=True))
    except (ValueError, binascii.Error):
        raise BadInput(
            f"a public key is {KEY_PREFIX} and 32 bytes in base64; `cubecast token key` prints one"
        ) from None


def is_signed(public: Ed25519PublicKey, text: bytes, signature: bytes) -> bool:
    try:
        public.verify(signature, text)
    except InvalidSignature:
        return False
    return True
