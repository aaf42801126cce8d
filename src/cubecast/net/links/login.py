"""How a caller proves who it is, and whom it believes to have reached.

Between nodes the certificate must name the node; for a thin client it must be a node's, and name the host that was
dialled. Both are checked before anything is said. Secrets come from files or the environment and are read at each
connection, so that a new one is used as soon as it is there.
"""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cubecast.addresses import Address
from cubecast.errors import BadInput, RemoteProtocolError
from cubecast.ids import NodeId
from cubecast.net.links.connection import Connection
from cubecast.net.links.handshake import MAGIC, OLDEST_VERSION, VERSION, Challenge, ClientGreeting, Proof
from cubecast.net.security.identity import Identity, identities, uris_of
from cubecast.net.settings.security import TlsSettings, is_loopback

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


TOKEN, TOKEN_FILE = "CUBECAST_TOKEN", "CUBECAST_TOKEN_FILE"


@dataclass(frozen=True, kw_only=True)
class Login:
    """All of it optional; where a node's policy is not enabled nothing is needed."""

    tls: TlsSettings | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    key_file: Path | None = None
    """A private Ed25519 key, of the principal `name`."""
    name: str | None = None
    as_node: bool = False
    """A node that asks another one: its certificate is proof enough, and the name of the other's host of no account."""

    def __post_init__(self) -> None:
        if (self.key_file is None) != (self.name is None):
            raise BadInput("a key proves a name: give both, the file of the key and the principal's name")
        self.read_token()

    def read_token(self) -> str | None:
        if self.token is not None or self.token_file is None:
            return self.token
        try:
            return self.token_file.read_text().strip()
        except OSError as error:
            raise BadInput(f"cannot read {self.token_file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise BadInput(f"{self.token_file} holds no token") from None

    def dialling(self, cluster: str) -> Dialling | None:
        return for_client(self.tls, cluster, check_hostname=not self.as_node)

    def web_context(self, address: Address) -> ssl.SSLContext | None:
        """For pages, which a node with TLS serves in the clear to its own machine only."""
        if self.tls is None or is_loopback(address.host):
            return None
        from cubecast.net.links.tls import client_context  # brings a library along that others do without

        return client_context(self.tls)

    def objection(self, address: Address) -> str | None:
        """Why nothing is said there."""
        has_token = self.token is not None or self.token_file is not None
        if has_token and self.tls is None and not is_loopback(address.host):
            return "a token does not cross a network in the clear: use TLS"
        return None

    def greeting(self, cluster: str, label: str) -> ClientGreeting:
        token = self.read_token()
        return ClientGreeting(
            MAGIC, OLDEST_VERSION, VERSION, cluster, label, token, None if token is not None else self.name
        )

    def prove(self, connection: Connection, challenge: Challenge, cluster: str) -> Proof:
        if self.key_file is None or self.name is None:
            raise BadInput("the node asks for a key, and there is none")
        from cubecast.net.security.keys import read_private, statement  # brings a library along

        text = statement(cluster, self.name, challenge.challenge, connection.channel())
        return Proof(read_private(self.key_file).sign(text))


NOTHING = Login()


def node_login(tls: TlsSettings | None) -> Login:
    """For a node with these settings that asks another one as a client."""
    return NOTHING if tls is None else Login(tls=tls, as_node=True)


def from_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str | Path]:
    """The token or its file, for `Login`, where the environment names one."""
    if TOKEN in environment:
        return {"token": environment[TOKEN].strip()}
    return {"token_file": Path(environment[TOKEN_FILE])} if TOKEN_FILE in environment else {}
