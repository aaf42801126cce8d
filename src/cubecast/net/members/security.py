"""Everything about security that one node has, in one place for its doors."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from cubecast.addresses import Address
from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.net.links.connection import Connection
from cubecast.net.links.handshake import Greeting, JoinRequest, Refused
from cubecast.net.members.admission import node_identity, node_objection
from cubecast.net.security.identity import Identity
from cubecast.net.security.limits import Handshakes
from cubecast.net.security.policy import OPEN, Policy
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.security import is_loopback
from cubecast.protocol.families import find

if TYPE_CHECKING:
    from cubecast.net.links.tls import Pages, TlsContext
    from cubecast.net.security.identity import Trust

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
        """Those of all doors of this node together."""

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
