"""The policy: who is known, by what, and what they may do. Whatever it does not grant is refused.

As people write it:

[anonymous]                      # without this table nobody gets in without proof
subscribe = ["public.>"]

[principals.alice]
tokens = ["sha256:…"]            # from `cubecast token new alice`
keys = ["ed25519:…"]             # from `cubecast token key alice`
certificate = true               # a client certificate for alice is proof enough
publish = ["orders.*", "_inbox.*"]
subscribe = ["orders.>", "_inbox.*"]
admin = [">"]                    # status, held; whatever looks after the node
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cubecast.errors import BadInput, NotAuthenticated
from cubecast.net.security.credentials import (
    ClientCertificate,
    Credentials,
    KeyProof,
    Token,
    check_digest,
    check_name,
    digest,
    holder,
    matches,
)
from cubecast.net.security.principal import ANYBODY, Action, Principal
from cubecast.net.settings.sources import read_toml

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

NOTHING_SHOWN = "this node asks for a token, a key or a client certificate"
BAD_TOKEN = "this token is not valid here"
BAD_KEY = "this key is not valid here"
NOBODY: tuple[str, ...] = (digest("nobody", "nowhere"),)
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
    """`authenticate` who connects, then ask the principal; one that is not `enabled` lets everybody do everything."""

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
        name = holder(text)
        one = self.known.get(name) if name is not None else None
        good = matches(text, one.tokens if one is not None else NOBODY, self.cluster)
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
        from cubecast.net.security.credentials import NOBODYS_KEY, is_signed, statement

        text = statement(self.cluster, proof.name, proof.challenge, proof.channel)
        for key in keys:
            if is_signed(key, text, proof.signature):
                return True
        if not keys:
            is_signed(NOBODYS_KEY, text, proof.signature)  # takes the time it takes for a known principal
        return False


OPEN = Policy(enabled=False)
"""Security is not enabled: everybody may do everything."""


ANONYMOUS = "anonymous"
PROOFS = ("tokens", "keys", "certificate")


def load_policy(path: Path, cluster: str) -> Policy:
    """BadInput names the file and what is wrong with it; nothing is granted by a file that is wrong anywhere."""
    raw = read_toml(path)
    try:
        return parse_policy(raw, cluster)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def parse_policy(raw: dict[str, Any], cluster: str) -> Policy:
    _check_known("the policy", raw, (ANONYMOUS, "principals"))
    anonymous = None
    if ANONYMOUS in raw:
        table = _table(ANONYMOUS, raw[ANONYMOUS])
        _check_known(ANONYMOUS, table, tuple(Action))
        anonymous = Principal(ANONYMOUS, _grants(ANONYMOUS, table))
    principals = _table("principals", raw.get("principals", {}))
    return Policy(cluster, {name: _known(name, table) for name, table in principals.items()}, anonymous)


def _known(name: str, table: Any) -> Known:
    if check_name(name) == ANONYMOUS:
        raise BadInput(f"{ANONYMOUS!r} stands for those who show nothing and cannot be a principal's name")
    table = _table(name, table)
    _check_known(name, table, (*Action, *PROOFS))
    certificate = table.get("certificate", False)
    if not isinstance(certificate, bool):
        raise BadInput(f"{name}: certificate is true or false, not {certificate!r}")
    tokens = tuple(check_digest(text) for text in _texts(name, "tokens", table))
    from cubecast.net.security.credentials import read_public  # brings a library along that others do without

    keys = tuple(read_public(text) for text in _texts(name, "keys", table))
    return Known(Principal(name, _grants(name, table)), tokens, keys, certificate)


def _grants(name: str, table: dict[str, Any]) -> dict[Action, tuple[str, ...]]:
    return {action: _texts(name, action, table) for action in Action}


def _texts(name: str, key: str, table: dict[str, Any]) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadInput(f"{name}: {key} is a list of texts, not {value!r}")
    return tuple(value)


def _table(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{name} is a table, not {value!r}")
    return value


def _check_known(name: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise BadInput(f"{name}: unknown settings {', '.join(unknown)}; known are {', '.join(known)}")
