"""Everything about security that one node has, in one place for its listeners; who may pass them: the certificate, the
token or the key behind a greeting.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, Protocol

from cubecast.addresses import Address
from cubecast.errors import BadInput, NotAuthenticated
from cubecast.ids import NodeId
from cubecast.net.links.connection import Connection
from cubecast.net.links.handshake import Challenge, ClientGreeting, Greeting, JoinRequest, Proof, Refused
from cubecast.net.links.listener import UnauthenticatedCaller
from cubecast.net.security.credentials import ClientCertificate, Credentials, KeyProof, Token
from cubecast.net.security.identity import Identity, identities, uris_of
from cubecast.net.security.limits import Handshakes
from cubecast.net.security.policy import ANYBODY, OPEN, Policy, Principal
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.security import is_loopback
from cubecast.protocol.families import find

if TYPE_CHECKING:
    from cubecast.net.links.tls import Pages, TlsContext
    from cubecast.net.security.trust import Trust


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


def prove(policy: Policy, caller: UnauthenticatedCaller, proof: Proof) -> Visitor | Refused:
    """Let a client in that was asked to sign something."""
    assert caller.asked is not None, "only who was asked answers"
    greeting, challenge = caller.asked
    credentials = KeyProof(greeting.key or "", challenge.challenge, caller.channel, proof.signature)
    return _authenticated(policy, credentials)


def _authenticated(policy: Policy, credentials: Credentials) -> Visitor | Refused:
    try:
        return Visitor(policy.authenticate(credentials), credentials)
    except NotAuthenticated as error:
        return Refused(str(error), retry=False)


log = logging.getLogger(__name__)

NO_MEMBERS = (
    "this node has a policy and no TLS, so it cannot tell who may be a member: give it certificates, or --insecure"
)

OPEN_TO_ALL = (
    "TLS keeps nobody out who wants to be a client, and there is no policy: whoever reaches this node may read, write "
    "and look at everything; give it a --policy"
)


class Security:
    """`security.policy.authenticate(credentials)` gives a principal; `principal.may(action, topic)` decides."""

    def __init__(
        self,
        config: NodeConfig,
        on_policy: Callable[[Policy], None] = lambda policy: None,
        on_trust: Callable[["Trust"], None] = lambda trust: None,
    ) -> None:
        """`on_policy` is told of every new policy, for those who were let in by the old one; `on_trust` whom to believe
        whenever certificates were read again."""
        self._config, self._on_policy, self._on_trust = config, on_policy, on_trust
        self.policy = self._load_policy()
        self.tls = self._load_tls()
        self.handshakes = Handshakes()
        """Those of all listeners of this node together."""

    def settled(self, config: NodeConfig) -> NodeConfig:
        """The configuration with the id the certificate names; BadInput if it forbids the one asked for."""
        if self.tls is None:
            return config
        identity = self.tls.identity
        if config.node is None and identity.only_node is not None:
            return replace(config, node=identity.only_node)
        node = config.node
        if node is None and find(config.protocol).population.draws_ids:
            if not identity.any_node:
                raise BadInput(f"the certificate is for {identity}: say with --id which of them to be")
            return config
        if node is None and not config.join:
            node = 0
        if node is not None and not identity.may_be(node):
            raise BadInput(f"the certificate is for {identity}; it does not let this node be node {node}")
        return config

    def warning(self) -> str | None:
        """What the operator may not have meant."""
        beyond = [one for one in (self._config.listen, self._config.http) if one and not is_loopback(one.host)]
        return OPEN_TO_ALL if beyond and self.tls is not None and not self.policy.enabled else None

    def prepare(self, config: NodeConfig) -> Callable[[], None]:
        """Read certificates and policy again; what is returned makes both count. BadInput when one of them is wrong."""
        new_certificates = None if self.tls is None else self.tls.prepare()
        policy = self._load_policy()

        def take_effect() -> None:
            self._config = config
            if new_certificates is not None:
                new_certificates()
            if policy.enabled:
                self.policy = policy
                self._on_policy(policy)

        return take_effect

    def reload(self) -> bool:
        """For applications with a node inside. What is wrong changes nothing and leaves one line in the log."""
        try:
            self.prepare(self._config)()
        except BadInput as error:
            log.error("certificates and policy stay as they were: %s", error)
            return False
        return True

    def web_tls(self, address: Address) -> "Pages | None":
        """For pages; those of this machine for itself (health checks, mostly) are served in the clear."""
        return None if self.tls is None or is_loopback(address.host) else self.tls.pages

    def objection(self, connection: Connection, opening: Greeting | JoinRequest) -> Refused | None:
        """Why a caller may not be the node it wants to be. A member is not asked what it may do, so a policy is worth
        something only if not everybody can become one."""
        if self.tls is not None:
            return node_objection(connection, opening, self._config.cluster)
        return Refused(NO_MEMBERS, retry=False) if self.policy.enabled and not self._config.insecure else None

    def wanted(self, connection: Connection, request: JoinRequest) -> NodeId | None:
        """The id for a joiner, where there is nothing to choose."""
        identity = None if self.tls is None else node_identity(connection, self._config.cluster)
        only = identity.only_node if isinstance(identity, Identity) else None
        return request.wanted if only is None else only

    def _load_tls(self) -> "TlsContext | None":
        if self._config.tls is None:
            return None
        from cubecast.net.links.tls import TlsContext  # brings a library along that others do without

        return TlsContext(self._config.tls, self._config.cluster, self._on_trust)

    def _load_policy(self) -> Policy:
        path = self._config.policy
        if path is None:
            return OPEN
        from cubecast.net.security.policy import load_policy  # brings a library along that others do without

        return load_policy(path, self._config.cluster)
