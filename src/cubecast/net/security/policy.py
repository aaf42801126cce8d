"""The policy: who is known, by what, and what they may do. Whatever it does not grant is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cubecast.errors import NotAuthenticated
from cubecast.net.security import tokens
from cubecast.net.security.credentials import ClientCertificate, Credentials, KeyProof, Token
from cubecast.net.security.principal import ANYBODY, Principal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

NOTHING_SHOWN = "this node asks for a token, a key or a client certificate"
BAD_TOKEN = "this token is not valid here"
BAD_KEY = "this key is not valid here"
NOBODY: tuple[str, ...] = (tokens.digest("nobody", "nowhere"),)
"""What tokens of unknown names are compared with, so that the time taken does not tell which names are known."""


@dataclass(frozen=True)
class Known:
    """How one principal proves who it is."""

    principal: Principal
    tokens: tuple[str, ...] = ()
    keys: "tuple[Ed25519PublicKey, ...]" = ()
    by_certificate: bool = False


@dataclass(frozen=True)
class Policy:
    """`authenticate` at the door, then ask the principal; one that is not `enabled` lets everybody do everything."""

    cluster: str = ""
    known: Mapping[str, Known] = field(default_factory=dict)
    anonymous: Principal | None = None
    """Who shows nothing; None refuses them."""
    enabled: bool = True

    def authenticate(self, credentials: Credentials) -> Principal:
        """Who it is. Raises NotAuthenticated with the same words whatever exactly is wrong."""
        if not self.enabled:
            return ANYBODY
        match credentials:
            case None:
                if self.anonymous is None:
                    raise NotAuthenticated(NOTHING_SHOWN)
                return self.anonymous
            case Token(text):
                return self._by_token(text)
            case KeyProof():
                return self._by_key(credentials)
            case ClientCertificate(name):
                one = self.known.get(name)
                if one is None or not one.by_certificate:
                    raise NotAuthenticated(f"nobody is known here by a certificate for {name!r}")
                return one.principal

    def renewed(self, principal: Principal, credentials: Credentials) -> Principal | None:
        """The same principal under this policy, which replaced the one it was authenticated by; None: not any more."""
        try:
            found = self.authenticate(credentials)
        except NotAuthenticated:
            return None
        return found if found.name == principal.name else None

    def _by_token(self, text: str) -> Principal:
        name = tokens.holder(text)
        one = self.known.get(name) if name is not None else None
        good = tokens.matches(text, one.tokens if one is not None else NOBODY, self.cluster)
        if one is None or not good:
            raise NotAuthenticated(BAD_TOKEN)
        return one.principal

    def _by_key(self, proof: KeyProof) -> Principal:
        one = self.known.get(proof.name)
        good = self._has_signed(one.keys if one is not None else (), proof)
        if one is None or not good:
            raise NotAuthenticated(BAD_KEY)
        return one.principal

    def _has_signed(self, keys: "Sequence[Ed25519PublicKey]", proof: KeyProof) -> bool:
        # Here, because a node without keys in its policy does without the library.
        from cubecast.net.security.keys import NOBODYS_KEY, is_signed, statement

        text = statement(self.cluster, proof.name, proof.challenge, proof.channel)
        for key in keys:
            if is_signed(key, text, proof.signature):
                return True
        if not keys:
            is_signed(NOBODYS_KEY, text, proof.signature)  # takes the time it takes for a known principal
        return False


OPEN = Policy(enabled=False)
"""Security is not enabled: everybody may do everything."""
