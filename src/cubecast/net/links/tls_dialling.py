"""Calling over TLS: which context to use, and whom to believe to have reached.

Between nodes the certificate must name the node; for a thin client it must be a node's, and name the host that was
dialled. Both are checked before anything is said.
"""

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cubecast.errors import RemoteProtocolError
from cubecast.ids import NodeId
from cubecast.net.links.connection import Connection
from cubecast.net.security.identity import Identity, identities, uris_of
from cubecast.net.settings.security import TlsSettings

if TYPE_CHECKING:
    from cubecast.net.links.tls import TlsContext


@dataclass(frozen=True)
class Dialling:
    context: ssl.SSLContext
    cluster: str

    def check(self, connection: Connection) -> None:
        """RemoteProtocolError when no node of this cluster is there."""
        self._node(connection)

    def check_is(self, connection: Connection, node: NodeId) -> None:
        """RemoteProtocolError when it calls itself what its certificate does not name."""
        identity = self._node(connection)
        if not identity.may_be(node):
            raise RemoteProtocolError(f"its certificate is for {identity}, but it calls itself node {node}")

    def _node(self, connection: Connection) -> Identity:
        found = identities(uris_of(connection.certificate()))
        one = found.get(self.cluster)
        if one is None or not one.is_node:
            names = ", ".join(str(identity) for identity in found.values()) or "nobody in particular"
            raise RemoteProtocolError(f"its certificate is for {names}, not for a node of cluster {self.cluster!r}")
        return one


def for_node(tls: "TlsContext | None", cluster: str) -> Dialling | None:
    """With the files that are in force now."""
    return None if tls is None else Dialling(tls.dialling, cluster)


def for_client(settings: TlsSettings | None, cluster: str, *, check_hostname: bool = True) -> Dialling | None:
    if settings is None:
        return None
    from cubecast.net.links.tls import client_context  # brings a library along that others do without

    return Dialling(client_context(settings, check_hostname=check_hostname), cluster)
