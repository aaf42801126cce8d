"""The policy: who is known, by what, and what they may do. Whatever it does not grant is refused."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cubecast.errors import BadInput, NotAuthenticated, NotPermitted
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
from cubecast.net.settings.sources import read_toml
from cubecast.patterns import ONE, REST, check_pattern, is_pattern

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


# A principal: a name that a node knows, and what the policy lets it do.

Words = tuple[str, ...]
State = frozenset[Words]

MOST_STATES = 2_000
"""A question that needs more is answered with no: operators do not write such grants by hand."""
OTHER = " "
"""A word that no grant names; no word of a pattern holds a space."""
ENDED: Words = ()


def covers(grants: Iterable[Words], pattern: str) -> bool:
    """`pattern` must be valid. Topics kept for machinery (`_inbox.…`) are granted one by one, never by wildcard: their
    names are secrets of those who made them up."""
    if pattern.startswith("_") and is_pattern(pattern):
        return False
    return _Question().holds(tuple(pattern.split(".")), frozenset(grants), is_first=True)


class _Question:
    def __init__(self) -> None:
        self._answers: dict[tuple[Words, State, bool], bool] = {}

    def holds(self, pattern: Words, grants: State, *, is_first: bool = False) -> bool:
        """Do the grants select every continuation that the pattern selects?"""
        if not grants:
            return False
        if not pattern:
            return ENDED in grants
        if grants == {(REST,)} and not is_first:
            return True
        key = pattern, grants, is_first
        if key not in self._answers:
            if len(self._answers) >= MOST_STATES:
                return False
            self._answers[key] = True  # for `>`, which comes back to where it was: unless a rule says otherwise
            self._answers[key] = self._step(pattern, grants, is_first)
        return self._answers[key]

    def _step(self, pattern: Words, grants: State, is_first: bool) -> bool:
        word, rest = pattern[0], pattern[1:]
        if word not in (ONE, REST):
            return self.holds(rest, _after(grants, word, is_first))
        named = {grant[0] for grant in grants if grant} - {ONE, REST}
        if is_first:
            named = {one for one in named if not one.startswith("_")}
        for one in (*sorted(named), OTHER):
            left = _after(grants, one, is_first)
            if not self.holds(rest, left) or (word == REST and not self.holds(pattern, left)):
                return False
        return True


def _after(grants: State, word: str, is_first: bool) -> State:
    """What is left of the grants once the word was read; those that do not allow it are gone."""
    left: set[Words] = set()
    kept = is_first and word.startswith("_")
    for grant in grants:
        if not grant:
            continue
        if grant[0] == word or (grant[0] == ONE and not kept):
            left.add(grant[1:])
        elif grant[0] == REST and not kept:
            left |= {ENDED, (REST,)}
    return frozenset(left)


REMEMBERED = 4096
"""Decisions a principal keeps; with more it begins anew."""
EVERYTHING = ">"


class Action(StrEnum):
    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    ADMIN = "admin"
    """Looking at a node and changing how it runs; on the topic `>` unless it is about one topic."""


class Principal:
    """Made by a `Policy`; gateways and pages ask `may`. Decisions are remembered, a new policy makes new principals."""

    __slots__ = ("_decisions", "_grants", "is_unrestricted", "name")

    def __init__(
        self, name: str, grants: Mapping[Action, Iterable[str]] | None = None, *, is_unrestricted: bool = False
    ) -> None:
        self.name = name
        self.is_unrestricted = is_unrestricted
        """Clients need not prove who they are here: security is not enabled."""
        found = grants or {}
        self._grants = {
            action: tuple(tuple(check_pattern(pattern).split(".")) for pattern in found.get(action, ()))
            for action in Action
        }
        self._decisions: dict[tuple[str, str], bool] = {}

    def may(self, action: Action | str, topic_or_pattern: str) -> bool:
        """With wildcards only if everything the pattern selects, now or ever, is granted. What is no pattern is not."""
        if self.is_unrestricted:
            return True
        key = str(action), topic_or_pattern
        decision = self._decisions.get(key)
        if decision is None:
            if len(self._decisions) >= REMEMBERED:
                self._decisions.clear()
            decision = self._decisions[key] = self._decide(Action(action), topic_or_pattern)
        return decision

    def check(self, action: Action | str, topic_or_pattern: str = EVERYTHING) -> None:
        """Raises NotPermitted with a line for the one who asked."""
        if not self.may(action, topic_or_pattern):
            raise NotPermitted(refusal(self.name, action, topic_or_pattern))

    def _decide(self, action: Action, pattern: str) -> bool:
        try:
            return covers(self._grants[action], check_pattern(pattern))
        except BadInput:
            return False

    def __repr__(self) -> str:
        return f"<Principal {self.name}>"


def refusal(name: str, action: Action | str, topic_or_pattern: str) -> str:
    match Action(action):
        case Action.PUBLISH:
            return f"{name} may not publish on {topic_or_pattern}"
        case Action.SUBSCRIBE:
            return f"{name} may not subscribe to {topic_or_pattern}, or not to all of it"
        case Action.ADMIN:
            return f"{name} may not look after this node" + (
                "" if topic_or_pattern == EVERYTHING else f"'s {topic_or_pattern}"
            )


ANYBODY = Principal("anybody", is_unrestricted=True)
"""Everybody, where security is not enabled."""


# The policy and its file.

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
    from cubecast.net.security.keys import read_public  # brings a library along that others do without

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
