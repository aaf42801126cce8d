"""Ed25519 keys: a client signs what the node made up, so that nothing worth stealing crosses the connection."""

import base64
import binascii
from pathlib import Path

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

PREFIX = "ed25519:"
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
    return PREFIX + base64.b64encode(raw).decode()


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
        if not text.startswith(PREFIX):
            raise ValueError
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(text.removeprefix(PREFIX), validate=True))
    except (ValueError, binascii.Error):
        raise BadInput(f"a public key is {PREFIX} and 32 bytes in base64; `cubecast token key` prints one") from None


def is_signed(public: Ed25519PublicKey, text: bytes, signature: bytes) -> bool:
    try:
        public.verify(signature, text)
    except InvalidSignature:
        return False
    return True
