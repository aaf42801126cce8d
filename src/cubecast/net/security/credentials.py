"""What proves who a caller is. Secrets never appear in `repr`, so they cannot slip into a log.

Tokens are 256 random bits with a name in front. A policy holds their digests, which are of no use to a thief. A digest
needs neither salt nor slowness because 256 bits cannot be guessed; the cluster's name is hashed along, so that a token
of one cluster is none in another, even where both read the same policy.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

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
PREFIX = "sha256:"

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
    return PREFIX + hashlib.sha256(text).hexdigest()


def check_digest(text: str) -> str:
    if not re.fullmatch(PREFIX + "[0-9a-f]{64}", text):
        raise BadInput(f"a token's digest is {PREFIX} and 64 hexadecimal digits; `cubecast token new` prints one")
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
