"""What a client shows to prove who it is. Secrets never appear in `repr`, so they cannot slip into a log."""

from dataclasses import dataclass, field
from typing import TypeAlias


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
