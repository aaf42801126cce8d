"""Who may pass: the certificate, the token or the key behind a greeting.

A node's greeting is believed as far as its certificate goes: it names the cluster and the ids its owner may hold.
"""

from dataclasses import dataclass
from secrets import token_bytes
from typing import Any, Protocol

from cubecast.errors import NotAuthenticated
from cubecast.net.links.connection import Connection
from cubecast.net.links.handshake import Challenge, ClientGreeting, Greeting, JoinRequest, Proof, Refused
from cubecast.net.links.unauthenticated import Stranger
from cubecast.net.security.credentials import ClientCertificate, Credentials, KeyProof, Token
from cubecast.net.security.identity import Identity, identities, uris_of
from cubecast.net.security.policy import Policy
from cubecast.net.security.principal import ANYBODY, Principal

CHALLENGE_BYTES = 32


class Shown(Protocol):
    """What a client came through."""

    def certificate(self) -> dict[str, Any] | None: ...


@dataclass(frozen=True)
class Visitor:
    """A client that was let in, and what for."""

    principal: Principal
    credentials: Credentials


OPEN_VISITOR = Visitor(ANYBODY, None)
NODE_VISITOR = Visitor(Principal("a node", is_unrestricted=True), None)
"""A node that asks another one, for what is in its log: as a member it sees and says everything anyway."""


def node_identity(connection: Connection, cluster: str) -> Identity | Refused:
    """What the other end's certificate lets it be, or why it is no node of this cluster."""
    certificate = connection.certificate()
    if certificate is None:
        return Refused("a node of this cluster shows a certificate, and you showed none", retry=False)
    found = identities(uris_of(certificate))
    one = found.get(cluster)
    if one is not None and one.is_node:
        return one
    theirs = "nobody in particular" if not found else next(iter(found.values())) if one is None else one
    return Refused(f"your certificate is for {theirs}, not for a node of cluster {cluster!r}", retry=False)


def node_objection(connection: Connection, opening: Greeting | JoinRequest, cluster: str) -> Refused | None:
    """Why a caller may not be the node it wants to be."""
    identity = node_identity(connection, cluster)
    if isinstance(identity, Refused):
        return identity
    wanted = opening.place.node if isinstance(opening, Greeting) else opening.wanted
    if wanted is not None and not identity.may_be(wanted):
        return Refused(f"your certificate is for {identity}; you may not be node {wanted}", retry=False)
    if wanted is None and not identity.any_node and identity.only_node is None:
        return Refused(f"your certificate is for {identity}: say with --id which of them to be", retry=False)
    return None


def admit(policy: Policy, connection: Shown, greeting: ClientGreeting) -> Visitor | Challenge | Refused:
    """Let a client in, or ask for more. The first proof that it shows counts, even if it is wrong."""
    if not policy.enabled:
        return OPEN_VISITOR
    if greeting.token is not None:
        return _authenticated(policy, Token(greeting.token))
    if greeting.key is not None:
        return Challenge(token_bytes(CHALLENGE_BYTES))
    found = identities(uris_of(connection.certificate()))
    mine = found.get(policy.cluster)
    if mine is not None:
        return NODE_VISITOR if mine.client is None else _authenticated(policy, ClientCertificate(mine.client))
    if found:
        return Refused(f"your certificate is for {next(iter(found.values()))}", retry=False)
    return _authenticated(policy, None)


def prove(policy: Policy, stranger: Stranger, proof: Proof) -> Visitor | Refused:
    """Let a client in that was asked to sign something."""
    assert stranger.asked is not None, "only who was asked answers"
    greeting, challenge = stranger.asked
    credentials = KeyProof(greeting.key or "", challenge.challenge, stranger.channel, proof.signature)
    return _authenticated(policy, credentials)


def _authenticated(policy: Policy, credentials: Credentials) -> Visitor | Refused:
    try:
        return Visitor(policy.authenticate(credentials), credentials)
    except NotAuthenticated as error:
        return Refused(str(error), retry=False)
